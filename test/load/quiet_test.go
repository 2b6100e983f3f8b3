//go:build nightly

package load

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// Attackers have a core of their own: what is measured is what they take from the quiet team
// within the provider, and not what they compute themselves.
const (
	attacking = "0"
	defending = "1"
)

// quietVariable makes the test program be the client of the quiet team.
const quietVariable = "LANDWAITER_QUIET"

// quietOrder tells the client of the quiet team what to ask, and for how long.
type quietOrder struct {
	URL                  string
	CA, Certificate, Key []byte // PEM
	Keys                 []string
	Time                 time.Duration
}

func TestMain(m *testing.M) {
	if os.Getenv(quietVariable) == "" {
		os.Exit(m.Run())
	}
	if err := askQuietly(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// askQuietly asks for one image after the other, each of which must be allowed, and writes how
// long the answers took.
func askQuietly(in io.Reader, out io.Writer) error {
	var order quietOrder
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(order.Certificate, order.Key)
	if err != nil {
		return err
	}
	client := gatekeeper.New(gatekeeper.Options{URL: order.URL, RootCAs: order.CA, Certificate: &certificate, Timeout: 10 * time.Second})
	defer client.Close()
	var took []time.Duration
	for end, i := time.Now().Add(order.Time), 0; time.Now().Before(end); i++ {
		key := order.Keys[i%len(order.Keys)]
		began := time.Now()
		response, err := client.Ask(context.Background(), gatekeeper.VerdictPath, key)
		took = append(took, time.Since(began))
		verdict, why := gatekeeper.Judge(gatekeeper.Items(response)[key])
		if err != nil || verdict != gatekeeper.Allowed {
			return fmt.Errorf("%s: %w", key, errors.Join(err, errors.New(response.SystemError+why)))
		}
		pause(context.Background(), 2*time.Millisecond) // a client that does not flood
	}
	return json.NewEncoder(out).Encode(took)
}

// onCore is a command of this program on one core, if there are two.
func onCore(ctx context.Context, core, self string) *exec.Cmd {
	if runtime.NumCPU() < 2 {
		return exec.CommandContext(ctx, self)
	}
	return exec.CommandContext(ctx, "taskset", "--cpu-list", core, self)
}

// pin keeps all threads of a process on cores, if there are two.
func pin(t *testing.T, pid int, cores string) {
	t.Helper()
	if runtime.NumCPU() < 2 {
		return
	}
	said, err := exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", cores, strconv.Itoa(pid)).CombinedOutput()
	require.NoError(t, err, "%s", said)
}
