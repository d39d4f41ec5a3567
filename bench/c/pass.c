// The least a proxy can do: one thread, poll, two pipes. usage: pass COMMAND [ARG...]
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static char buffer[65536];

static int move(int from, int to) {
  ssize_t size = read(from, buffer, sizeof buffer);
  if (size <= 0) return 0;
  for (char *data = buffer; size > 0;) {
    ssize_t n = write(to, data, size);
    if (n <= 0) return 0;
    data += n;
    size -= n;
  }
  return 1;
}

int main(int argc, char **argv) {
  int in[2], out[2];
  if (argc < 2 || pipe(in) || pipe(out)) return 2;
  if (fork() == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[0]), close(in[1]), close(out[0]), close(out[1]);
    execvp(argv[1], argv + 1);
    _exit(127);
  }
  close(in[0]), close(out[1]);
  struct pollfd fds[2] = {{.fd = 0, .events = POLLIN}, {.fd = out[0], .events = POLLIN}};
  for (;;) {
    if (poll(fds, 2, -1) < 0) return 1;
    if (fds[1].revents && !move(out[0], 1)) return 0;
    if (fds[0].revents && !move(0, in[1])) {
      close(in[1]);
      fds[0].fd = -1;
    }
  }
}
