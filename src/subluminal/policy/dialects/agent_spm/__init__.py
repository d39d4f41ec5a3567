"""Agent-SPM's policy bundles: JSON that is checked, converted to a bundle, signed and verified.

`shape` is the bundle as Agent-SPM's users write it; `checking` finds what cannot be meant;
`conversion` makes our bundle; `expressions` translates regular expressions of JavaScript; `signing`
has the HMAC. `reading` puts them together. Pure.
"""
