"""Who acts and where: the agent and its client, the user, the CI job, the pod."""
