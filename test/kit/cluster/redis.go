package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Redis is a running redis-server with one user, who may only use keys that begin with
// "landwaiter:".
type Redis struct {
	*Process
	// URL is that of the user, with the password.
	URL string

	dir      string
	port     int
	commands string // that the user may use
	extra    []string
	// Password of the user, for the next Restart.
	Password string
}

const redisPassword = "only-on-loopback"

// RedisCommands are the ACL rules of Landwaiter's user in Redis, as in docs/operate/redis.md.
const RedisCommands = "+getrange +strlen +set +unlink +scan +ping +hello +auth +select"

// StartRedis starts a redis-server without persistence that logs to dir/redis.log.
// extra holds further arguments.
func StartRedis(ctx context.Context, dir string, extra ...string) (*Redis, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	r := newRedis(dir, ports[0], RedisCommands, extra...)
	return r, r.Restart(ctx)
}

// newRedis returns a redis-server that is not running. Restart starts it.
func newRedis(dir string, port int, commands string, extra ...string) *Redis {
	return &Redis{dir: dir, port: port, commands: commands, extra: extra, Password: redisPassword,
		URL: fmt.Sprintf("redis://landwaiter:%s@%s/0", redisPassword, loopback(port))}
}

// Restart starts a killed server again, empty, at the same address.
func (r *Redis) Restart(ctx context.Context) (err error) {
	if err := os.MkdirAll(r.dir, 0o750); err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	args := []string{"--bind", "127.0.0.1", "--port", fmt.Sprint(r.port), "--save", "", "--appendonly", "no", "--dir", r.dir,
		"--user", "default", "off", "--user", "landwaiter", "on", ">" + r.Password, "~landwaiter:*"}
	args = append(append(args, strings.Fields(r.commands)...), r.extra...)
	r.Process, err = StartProcess(r.dir, Command{Name: "redis", Path: "redis-server", Args: args})
	if err != nil {
		return err
	}
	return r.Await(ctx, r.answers)
}

// answers sends PING. A request for a password counts as a response.
func (r *Redis) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", loopback(r.port))
	if err != nil {
		return fmt.Errorf("connect to redis: %w", err)
	}
	defer func() { _ = connection.Close() }() // it was read
	if err := connection.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return fmt.Errorf("ask redis: %w", err)
	}
	if _, err := io.WriteString(connection, "PING\r\n"); err != nil {
		return fmt.Errorf("ask redis: %w", err)
	}
	answer := make([]byte, 64)
	n, err := connection.Read(answer)
	if err != nil {
		return fmt.Errorf("ask redis: %w", err)
	}
	if text := string(answer[:n]); !strings.HasPrefix(text, "+PONG") && !strings.HasPrefix(text, "-NOAUTH") {
		return errors.New("redis answers " + text)
	}
	return nil
}

// Extra replaces the further arguments for the next Restart.
func (r *Redis) Extra(extra ...string) { r.extra = extra }

// Port is the port on 127.0.0.1.
func (r *Redis) Port() int { return r.port }

// Address is host:port.
func (r *Redis) Address() string { return loopback(r.port) }

// Pause suspends the process (SIGSTOP). Resume continues it.
func (r *Redis) Pause() error { return r.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (r *Redis) Resume() error { return r.signal(syscall.SIGCONT) }

func (r *Redis) signal(signal syscall.Signal) error {
	if err := r.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("signal redis: %w", err)
	}
	return nil
}
