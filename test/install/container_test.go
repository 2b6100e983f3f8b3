//go:build nightly

package install

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// container is what a kubelet knows of a container before it starts it.
type container struct {
	image    imageOnDisk
	security deployment
	args     []string
	mounts   map[string]string // folder in the container: folder on this machine, read-only
}

// running is a started container.
type running struct {
	id, state string // state is the folder of runc's own files
	command   *exec.Cmd
	log, user string
	ended     chan struct{}
}

// output returns what the container has written.
func (r *running) output() string {
	text, err := os.ReadFile(r.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// user returns the image's user as two numbers: Kubernetes can check no other.
func (i imageOnDisk) user(t *testing.T) (uid, gid int) {
	t.Helper()
	first, second, found := strings.Cut(i.config.User, ":")
	require.True(t, found, "the image's user is %q", i.config.User)
	uid, err := strconv.Atoi(first)
	require.NoError(t, err)
	gid, err = strconv.Atoi(second)
	require.NoError(t, err)
	return uid, gid
}

// readableFor gives a folder to the image's user, as a kubelet does with Secrets.
func readableFor(t *testing.T, i imageOnDisk, folder string) string {
	t.Helper()
	uid, gid := i.user(t)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		require.NoError(t, os.Chown(filepath.Join(folder, entry.Name()), uid, gid))
	}
	return folder
}

// bundle writes the folder that runc starts a container from, and returns it. It changes
// what `runc spec` writes: the OCI runtime's own default is the base.
func (c container) bundle(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	text, err := exec.CommandContext(t.Context(), "runc", "spec", "--bundle", folder).CombinedOutput()
	require.NoError(t, err, "%s", text)
	name := filepath.Join(folder, "config.json")
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	var spec struct {
		Version  string           `json:"ociVersion"`
		Process  map[string]any   `json:"process"`
		Root     map[string]any   `json:"root"`
		Hostname string           `json:"hostname"`
		Mounts   []map[string]any `json:"mounts"`
		Linux    map[string]any   `json:"linux"`
	}
	require.NoError(t, json.Unmarshal(text, &spec))
	uid, gid := c.image.user(t)
	spec.Process["terminal"] = false
	spec.Process["args"] = append(append([]string(nil), c.image.config.Entrypoint...), c.args...)
	spec.Process["env"] = c.security.environment(t)
	spec.Process["user"] = map[string]int{"uid": uid, "gid": gid}
	spec.Process["noNewPrivileges"] = !*c.security.container(t).SecurityContext.AllowPrivilegeEscalation
	none := map[string][]string{}
	for _, set := range []string{"bounding", "effective", "inheritable", "permitted", "ambient"} {
		none[set] = []string{}
	}
	spec.Process["capabilities"] = none
	spec.Root = map[string]any{"path": c.image.rootfs, "readonly": *c.security.container(t).SecurityContext.ReadOnlyRootFilesystem}
	kept := []map[string]any{{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
		"options": []string{"nosuid", "nodev", "noexec", "mode=1777", "size=16m"}}}
	for _, mount := range spec.Mounts {
		if mount["type"] != "cgroup" { // not every machine has it, and nothing reads it
			kept = append(kept, mount)
		}
	}
	for inside, outside := range c.mounts {
		kept = append(kept, map[string]any{"destination": inside, "type": "bind", "source": outside, "options": []string{"bind", "ro", "nosuid", "nodev", "noexec"}})
	}
	spec.Mounts = kept
	// The machine's own network, so that 127.0.0.1 is that of the registry and of the test.
	namespaces := []map[string]string{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}}
	spec.Linux["namespaces"] = namespaces
	text, err = json.Marshal(spec)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return folder
}

// start starts the container, and removes it at the end of the test.
func (c container) start(t *testing.T) *running {
	t.Helper()
	require.Zero(t, os.Getuid(), "runc needs root here: run make nightly as root")
	r := &running{id: "landwaiter-" + strings.ToLower(rand.Text()), state: t.TempDir(), log: filepath.Join(t.TempDir(), "log"), ended: make(chan struct{}),
		user: c.image.config.User}
	log, err := os.Create(r.log)
	require.NoError(t, err)
	defer log.Close()
	r.command = exec.Command("runc", "--root", r.state, "run", "--bundle", c.bundle(t), r.id)
	r.command.Stdout, r.command.Stderr = log, log
	require.NoError(t, r.command.Start(), "make nightly installs runc")
	go func() {
		_ = r.command.Wait() // wait reads the exit code
		close(r.ended)
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), suite.Patience)
		defer cancel()
		text, err := exec.CommandContext(ctx, "runc", "--root", r.state, "delete", "--force", r.id).CombinedOutput()
		require.NoError(t, err, "%s", text)
		<-r.ended
	})
	return r
}

// await calls ready until it returns nil. It fails when the container ends before.
func (r *running) await(t *testing.T, ready func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(suite.Within(t))
	defer cancel()
	go func() {
		select {
		case <-r.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	require.NoError(t, cluster.Until(ctx, ready), "%s", r.output())
}

// requireConfined looks at the process from outside: its user, no capabilities, no way
// to get any, and a root that is read-only.
func (r *running) requireConfined(t *testing.T) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "runc", "--root", r.state, "state", r.id).Output()
	require.NoError(t, err)
	var state struct{ PID int }
	require.NoError(t, json.Unmarshal(text, &state))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", state.PID))
	require.NoError(t, err)
	uid, gid, _ := strings.Cut(r.user, ":")
	for _, line := range []string{"Uid:" + strings.Repeat("\t"+uid, 4), "Gid:" + strings.Repeat("\t"+gid, 4), "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "NoNewPrivs:\t1"} {
		require.Contains(t, string(status), line+"\n")
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", state.PID))
	require.NoError(t, err)
	var options []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[1] == "/" {
			options = strings.Split(fields[3], ",")
		}
	}
	require.Contains(t, options, "ro", "%s", mounts)
}

// terminate stops the container as a kubelet does, and returns its exit code.
func (r *running) terminate(t *testing.T) int {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "runc", "--root", r.state, "kill", r.id, "TERM").CombinedOutput()
	require.NoError(t, err, "%s", text)
	return r.wait(t)
}

// wait returns the exit code once the container has ended.
func (r *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-r.ended:
		return r.command.ProcessState.ExitCode()
	case <-time.After(suite.Patience):
		require.NoError(t, errors.New("the container does not end"), "%s", r.output())
		return -1
	}
}
