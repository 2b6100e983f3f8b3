package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// EndAtOnce is a variable for programs that have the race detector, which otherwise sleep
// for a second before they end.
const EndAtOnce = "GORACE=atexit_sleep_ms=0"

// Command describes how to start a process.
type Command struct {
	Name string // of the log file
	Path string // of the binary, or a name to find in PATH
	Args []string
	Env  []string // in addition to PATH and HOME, which processes inherit, and EndAtOnce
}

// Process is a running program whose output goes to a log file.
type Process struct {
	name, log string
	command   Command
	cmd       *exec.Cmd
	ended     chan struct{}
	err       error // of Wait, once ended is closed
}

// StartProcess starts a program. It appends the output to dir/NAME.log.
func StartProcess(dir string, c Command) (*Process, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	log := filepath.Join(dir, c.Name+".log")
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	defer func() { _ = file.Close() }() // the process has its own
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), EndAtOnce}, c.Env...)
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	p := &Process{name: c.Name, log: log, command: c, cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the process.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.ended
}

// Terminate asks the process to end, as kubelet does, and kills it after grace.
func (p *Process) Terminate(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.Kill()
	}
}

// Tail returns the last lines of the log.
func (p *Process) Tail(lines int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// poll is the interval between readiness checks.
const poll = 25 * time.Millisecond

// Await calls ready until it returns nil, ctx ends, or the process ends. In the last
// case the error has the end of its log.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.ended:
			cancel(errors.New("it ended"))
		case <-ctx.Done():
		}
	}()
	err := Until(ctx, ready)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s is not ready (%w): %w; its log ends with:\n%s", p.name, context.Cause(ctx), err, p.Tail(20))
}

// Until calls ready until it returns nil or ctx ends, and returns its last error, or the
// one before if the last call was only cut short.
func Until(ctx context.Context, ready func(context.Context) error) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var before error
	for {
		err := ready(ctx)
		switch {
		case err == nil:
			return nil
		case before != nil && ctx.Err() != nil: // the last try was cut short
			return before
		}
		before = err
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Ports that FreePorts chooses from are below those that the kernel gives to outgoing
// connections and to listeners on any port, which could take one before it is used.
const (
	firstPort = 10000
	lastPort  = 30000
)

// givenPorts are those that FreePorts has returned, which it does not return again.
var givenPorts sync.Map

// FreePorts returns n ports of 127.0.0.1 that were free a moment ago.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for range lastPort - firstPort {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		if listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", loopback(port)); err == nil {
			_ = listener.Close() // nobody has connected
			ports = append(ports, port)
		}
	}
	return nil, errors.New("find a free port: there is none")
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
