// A minimal MCP server: answers every request at once, or after a delay.
// usage: echo [RESULT_BYTES [DELAY_US]]
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *INITIALIZE =
    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"
    "\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}";
static const char *TOOLS =
    "{\"tools\":[{\"name\":\"echo\",\"description\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}";

static void put(const char *data, size_t size) {
  while (size > 0) {
    ssize_t n = write(1, data, size);
    if (n <= 0) exit(0);
    data += n;
    size -= n;
  }
}

int main(int argc, char **argv) {
  size_t bytes = argc > 1 ? strtoul(argv[1], 0, 10) : 2;
  useconds_t delay = argc > 2 ? atoi(argv[2]) : 0;
  char *result = malloc(bytes + 128);
  int n = sprintf(result, "{\"content\":[{\"type\":\"text\",\"text\":\"");
  memset(result + n, 'x', bytes);
  strcpy(result + n + bytes, "\"}],\"isError\":false}");
  char *reply = malloc(bytes + 512);
  char *line = 0;
  size_t capacity = 0;
  while (getline(&line, &capacity, stdin) > 0) {
    char *id = strstr(line, "\"id\":");
    if (!id) continue;
    id += 5;
    while (*id == ' ') id++;
    size_t length = *id == '"' ? strcspn(id + 1, "\"") + 2 : strcspn(id, ",} ");
    const char *body = "{}";
    if (strstr(line, "\"initialize\"")) body = INITIALIZE;
    else if (strstr(line, "\"tools/list\"")) body = TOOLS;
    else if (strstr(line, "\"tools/call\"")) {
      body = result;
      if (delay) usleep(delay);
    }
    int size = sprintf(reply, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n", (int)length, id, body);
    put(reply, size);
  }
  return 0;
}
