"""Who acts and where: agents, workloads, CI systems, pods."""
