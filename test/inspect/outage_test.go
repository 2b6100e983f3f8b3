//go:build e2e

package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// refusals is the part of status -o json about registries.
type refusals struct {
	Namespaces []struct {
		Undecided []struct {
			Registry, Image, Reason, First, Last, Answered string
			Count                                          int
			Over                                           bool
		}
	}
}

// A person of a team reads all that this test reads, with the permissions that the team has.
func TestATeamSeesWithinAMinuteThatItsRegistryDoesNotAnswer(t *testing.T) {
	w := installed(t).hire(t)
	image, host := w.image(t, w.iris+"/shop", w.platform), w.Registry.Host()
	w.Registry.SetIntercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v2/"+w.iris+"/") {
			return false
		}
		<-r.Context().Done()
		return true
	})
	t.Cleanup(func() { w.Registry.SetIntercept(nil) })
	w.deploys(t, w.dev, w.irisWeb, "shop", image)

	minute, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ofAdmin := func(ok func(r refusals) bool) func(context.Context) error {
		return func(context.Context) error {
			r := w.asks(t, w.admin.landwaiter, "status", "-o", "json")
			var found refusals
			if err := json.Unmarshal([]byte(r.Stdout), &found); err != nil {
				return fmt.Errorf("read %s%s: %w", r.Stdout, r.Stderr, err)
			}
			if len(found.Namespaces) != 1 || len(found.Namespaces[0].Undecided) != 1 || !ok(found) {
				return fmt.Errorf("status does not say it: %s", r.Stdout)
			}
			return nil
		}
	}
	require.NoError(t, cluster.Until(minute, ofAdmin(func(r refusals) bool {
		u := r.Namespaces[0].Undecided[0]
		return u.Registry == host && u.Count > 0 && u.First != "" && u.Last != "" && u.Reason != "" && !u.Over
	})), "the log ends with:\n%s", w.Current().Tail(30))
	r := w.asks(t, w.admin.landwaiter, "status")
	require.Equal(t, 1, r.Code, r.Stderr)
	for _, text := range []string{"UNDECIDED IN THE LAST HOUR", "images of " + host, " since ", image} {
		require.Contains(t, strings.Join(strings.Fields(r.Stdout), " "), text)
	}
	r = w.asks(t, w.dev.kubectl, "get", "events", "--field-selector", "reason="+v1beta1.EventImageUndecided)
	require.Contains(t, r.Stdout, "Landwaiter could not decide about images of "+host, r.Stderr)
	w.admin.opens(t).finds(w, t, "/namespaces/"+w.irisWeb, "Undecided in the last hour", "images of "+host)

	r = w.zebraAdmin.landwaiter.Run(t, "", "status")
	require.NotContains(t, r.Stdout, "UNDECIDED IN THE LAST HOUR", "no other team is told")
	r = w.zebraAdmin.kubectl.Run(t, "", "get", "events")
	require.NotContains(t, r.Stdout, v1beta1.EventImageUndecided)

	w.Registry.SetIntercept(nil)
	w.eventually(t, func(ctx context.Context) error {
		return w.dev.client.Create(ctx, suite.Restricted(suite.Pod(w.irisWeb, w.fresh("again"), image)))
	})
	w.eventually(t, ofAdmin(func(r refusals) bool {
		u := r.Namespaces[0].Undecided[0]
		return u.Over && u.Answered != ""
	}))
}

// firstFinding runs check as a cluster admin does, who waits for 15 seconds, and returns what it finds
// first.
func (w *installation) firstFinding(t *testing.T) (id, said string) {
	t.Helper()
	r := caller(t, w.Kubeconfig()).landwaiter.Run(t, "", "check", "--timeout=15s", "-o", "json")
	var found struct {
		Findings []struct{ ID, Message, Why, Command string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &found), "%d: %s%s", r.Code, r.Stdout, r.Stderr)
	if len(found.Findings) == 0 {
		return "", ""
	}
	require.Equal(t, 1, r.Code)
	f := found.Findings[0]
	return f.ID, f.Message + ": " + f.Why + ": " + f.Command
}

// admits reports whether a pod with a signed image is admitted now.
func (w *installation) admits(ctx context.Context, image string) error {
	return w.Client.Create(ctx, suite.Pod("default", "probe", image), client.DryRunAll)
}

// back waits until pods are admitted, and check has nothing to say about answers any more.
func (w *installation) back(t *testing.T, image string) {
	t.Helper()
	w.eventually(t, func(ctx context.Context) error { return w.admits(ctx, image) })
	w.eventually(t, func(context.Context) error {
		if id, said := w.firstFinding(t); id == check.NoAnswer {
			return errors.New(said)
		}
		return nil
	})
}

func TestAFrozenServerIsTheFirstFindingOfCheck(t *testing.T) {
	w := installed(t)
	image := w.image(t, w.fresh("frozen")+"/app", w.platform)
	w.back(t, image)
	pid := w.Current().PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { require.NoError(t, syscall.Kill(pid, syscall.SIGCONT)) })
	id, said := w.firstFinding(t)
	require.Equal(t, check.NoAnswer, id, said)
	require.Contains(t, said, "accepts connections")
	require.Contains(t, said, "every new pod is refused where a constraint denies")
	require.Contains(t, said, "kubectl rollout restart deployment landwaiter")
	require.ErrorContains(t, w.admits(t.Context(), w.image(t, w.fresh("frozen")+"/app", w.platform)), "undecided: ", "as it says")
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	w.back(t, image)
}

func TestAServerThatIsGoneIsTheFirstFindingOfCheck(t *testing.T) {
	w := installed(t)
	image := w.image(t, w.fresh("gone")+"/app", w.platform)
	w.back(t, image)
	w.Current().Kill() // its Lease stays as it is
	id, said := w.firstFinding(t)
	_, err := w.StartReplica(suite.Within(t), w.Port())
	require.NoError(t, err)
	require.Equal(t, check.NoAnswer, id, said)
	require.Contains(t, said, "connection refused")
	require.Contains(t, said, "every new pod is refused where a constraint denies")
	w.back(t, image)
}
