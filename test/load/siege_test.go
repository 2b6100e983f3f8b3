//go:build nightly

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	// limit is resources.limits.memory of the chart, in MiB.
	limit = 512
	// images is how many images the quiet team has, and clients how many requests the
	// hostile one has under way.
	images  = 64
	clients = 16
	// think is the pause of a hostile client. All of them ask some 300 times a second for
	// 32 images each, which is more than Gatekeeper passes on.
	think = 50 * time.Millisecond
)

// siege is a process with a quiet team, and others that attack it.
type siege struct {
	*suite.Server
	client  *gatekeeper.Client
	dir     string // of the resources
	good    *fixture.Registry
	keys    []string // of the quiet team
	attacks []attack
	number  atomic.Int64 // of the hostile images so far
}

// besiege starts a process with the memory that the chart gives it, and the resources of
// the quiet team and of hostile ones, whose namespaces are evil-0 and so on.
func besiege(t *testing.T, attacks ...attack) *siege {
	t.Helper()
	w := &siege{dir: t.TempDir(), attacks: attacks}
	w.push(t)
	for i, a := range attacks {
		w.write(t, evil(i), strings.NewReplacer("name: evil,", "name: "+evil(i)+",", "namespace: evil}", "namespace: "+evil(i)+"}").Replace(a.resources))
	}
	w.accepted(t)
	pin(t, os.Getpid(), defending) // for the program, which inherits it
	args := []string{"--config-dir", w.dir, "--log-level", "error"}
	for _, a := range attacks {
		args = append(args, a.arguments...)
	}
	var err error
	w.Server, err = suite.ForTest(t).Server(t.Context(), suite.ServerOptions{Binary: suite.PlainServer,
		Env: []string{"GOGC=300", "GOMEMLIMIT=400MiB"}, Args: args})
	require.NoError(t, err)
	// Registries and clients of the attackers are in this process.
	pin(t, os.Getpid(), attacking)
	t.Cleanup(func() { pin(t, os.Getpid(), fmt.Sprintf("0-%d", runtime.NumCPU()-1)) })
	options := w.Certificates.Options(w.URL, 10*time.Second)
	options.Connections = 2 * clients
	w.client = gatekeeper.New(options)
	t.Cleanup(w.client.Close)
	return w
}

// push makes the images of the quiet team.
func (w *siege) push(t *testing.T) {
	t.Helper()
	var err error
	w.good, err = fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.good.Close() })
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	for i := range images {
		img, err := w.good.PushImage(t.Context(), fmt.Sprintf("quiet/app-%d", i), "v1")
		require.NoError(t, err)
		_, err = w.good.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
		require.NoError(t, err)
		w.keys = append(w.keys, "[quiet]"+img.Reference.Name()+"@"+img.Reference.Digest.String())
	}
	hosts := fmt.Sprintf("%q", w.good.Host())
	for _, a := range w.attacks {
		hosts += fmt.Sprintf(", %q", a.registry.host())
	}
	w.write(t, "cluster", fmt.Sprintf(`apiVersion: landwaiter.dev/v1beta1
kind: ClusterStore
metadata: {name: loopback}
spec: {registries: [%s], insecurePlainHTTP: true}
`, hosts))
	w.write(t, "quiet", namespace("quiet")+trust("quiet", "keys", string(key.PEM))+`---
apiVersion: landwaiter.dev/v1beta1
kind: Verifier
metadata: {name: release, namespace: quiet}
spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}
---
apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata: {name: strict, namespace: quiet}
spec: {rules: [{images: ["**"], require: [{anyOf: [release]}]}]}
`)
}

func namespace(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %[1]s, uid: uid-%[1]s}\n", name)
}

// trust is a TrustStore with PEM keys.
func trust(namespace, name, pem string) string {
	return fmt.Sprintf(`---
apiVersion: landwaiter.dev/v1beta1
kind: TrustStore
metadata: {name: %s, namespace: %s}
spec:
  type: PublicKeys
  source:
    inline: |
      %s
`, name, namespace, strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n      "))
}

func evil(i int) string { return fmt.Sprintf("evil-%d", i) }

// write writes YAML documents to files, none of which is too large to be read.
func (w *siege) write(t *testing.T, name, text string) {
	t.Helper()
	const most = 512 << 10
	for n, documents := 0, strings.SplitAfter(text, "\n---\n"); len(documents) > 0; n++ {
		var file strings.Builder
		for len(documents) > 0 && (file.Len() == 0 || file.Len()+len(documents[0]) < most) {
			file.WriteString(documents[0])
			documents = documents[1:]
		}
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, fmt.Sprintf("%s-%d.yaml", name, n)), []byte(file.String()), 0o600))
	}
}

// within fails the test if the process has ever had more memory than its limit, where the
// kernel would have ended it.
func (w *siege) within(t *testing.T) (peak int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.PID()))
	require.NoError(t, err)
	_, line, _ := strings.Cut(string(text), "\nVmHWM:")
	_, err = fmt.Sscan(line, &peak)
	require.NoError(t, err, "the process ended:\n%s", w.Tail(40))
	require.LessOrEqual(t, peak>>10, int64(limit), "MiB")
	return peak >> 10
}

// hostile returns keys of one attack: 32 images none of which was asked for before, or
// always the same one.
func (w *siege) hostile(i int) []string {
	a := w.attacks[i]
	key := func(n int64) string {
		return fmt.Sprintf("[%s]%s/app@%s", evil(i), a.registry.host(), digest.FromString(fmt.Sprint(n)))
	}
	if a.same {
		return []string{key(0)}
	}
	keys := make([]string, 32)
	for i := range keys {
		keys[i] = key(w.number.Add(1))
	}
	return keys
}

// flood asks until ctx ends, every attack in turn. No answer may allow anything.
func (w *siege) flood(ctx context.Context, all *sync.WaitGroup, t *testing.T) {
	for client := range clients {
		all.Go(func() {
			for turn := client; ctx.Err() == nil; turn++ {
				body, err := gatekeeper.Encode(w.hostile(turn % len(w.attacks))...)
				if err != nil {
					t.Error(err)
				}
				// Decoding large answers here would take the processors of the provider.
				answer, _, err := w.client.Send(ctx, gatekeeper.VerdictPath, body)
				if err == nil && bytes.Contains(answer, []byte(`\"isSuccess\":true`)) || bytes.Contains(answer, []byte(`"isSuccess":true`)) {
					t.Errorf("a hostile image was allowed: %.400s", answer)
				}
				pause(ctx, think)
			}
		})
	}
}

// edit changes a hostile namespace until ctx ends.
func (w *siege) edit(ctx context.Context, all *sync.WaitGroup, t *testing.T) {
	all.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: edit, namespace: evil-0}\ndata: {n: \"%d\"}\n", n)
			if err := os.WriteFile(filepath.Join(w.dir, "edit.yaml"), []byte(text), 0o600); err != nil {
				t.Error(err)
			}
			pause(ctx, 100*time.Millisecond)
		}
	})
}

// quiet has a process of the defenders' core ask for the images of the quiet team for a time,
// and returns how long the answers took.
func (w *siege) quiet(t *testing.T, d time.Duration) []time.Duration {
	t.Helper()
	order, err := json.Marshal(quietOrder{URL: w.URL, CA: w.Certificates.Authority.CertificatePEM,
		Certificate: w.Certificates.Client.CertificatePEM, Key: w.Certificates.Client.KeyPEM, Keys: w.keys, Time: d})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	command := onCore(t.Context(), defending, self)
	command.Env, command.Stdin, command.Stderr = append(os.Environ(), quietVariable+"=1"), bytes.NewReader(order), os.Stderr
	said, err := command.Output()
	peak := w.within(t)
	require.NoError(t, err, "at most %d MiB\n%s", peak, w.Tail(20))
	var took []time.Duration
	require.NoError(t, json.Unmarshal(said, &took))
	require.NotEmpty(t, took)
	return took
}

// percentile sorts took.
func percentile(percent int, took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)*percent/100]
}

// denied logs what one hostile image is denied for, which tells whether an attack reaches what it is about.
func (w *siege) denied(t *testing.T, i int) {
	t.Helper()
	key := w.hostile(i)[0]
	response, err := w.client.Ask(t.Context(), gatekeeper.VerdictPath, key)
	require.NoError(t, err)
	verdict, why := gatekeeper.Judge(gatekeeper.Items(response)[key])
	require.NotEqual(t, gatekeeper.Allowed, verdict)
	t.Logf("%s: %.300s", evil(i), response.SystemError+why)
}

// attack measures the quiet team alone and under attack, and reports both.
func (w *siege) attack(t *testing.T, d time.Duration) {
	t.Helper()
	before := w.quiet(t, d/2)
	for i := range w.attacks {
		w.denied(t, i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	w.flood(ctx, &all, t)
	w.edit(ctx, &all, t)
	pause(ctx, d/10)
	during := w.quiet(t, d)
	cancel()
	all.Wait()
	t.Logf("%d MiB at most; quiet team alone p50 %s p99 %s, under attack p50 %s p99 %s: %.1f times", w.within(t),
		percentile(50, before), percentile(99, before), percentile(50, during), percentile(99, during),
		float64(percentile(99, during))/float64(percentile(99, before)))
}

// accepted fails the test unless exactly the attacks that want it have resources that are refused: the others would attack
// nothing.
func (w *siege) accepted(t *testing.T) {
	t.Helper()
	s, loaded, err := service.Load(t.Context(), w.dir, service.Options{})
	require.NoError(t, err)
	defer s.Close()
	for i, a := range w.attacks {
		var own []string
		for _, p := range loaded.Problems {
			if p.Source.Namespace == evil(i) {
				own = append(own, policy.Cut(p.Source.String()+": "+p.Message, 300))
			}
		}
		require.Equal(t, a.refused, len(own) > 0, "%s: %q", evil(i), own[:min(len(own), 3)])
	}
}
