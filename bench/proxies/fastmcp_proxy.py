"""FastMCP's proxy over stdio, kept alive between calls as its documentation recommends."""

import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

backend = Client(StdioTransport(sys.argv[1], sys.argv[2:], keep_alive=True))
create_proxy(backend).run(transport="stdio", show_banner=False)
