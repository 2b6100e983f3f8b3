package enforcement

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// names are namespaces that exist. Those that begin with iris belong to the Tenant of that name.
type names []verify.Namespace

func (n names) Namespaces() []verify.Namespace {
	return append([]verify.Namespace{verify.Cluster}, n...)
}
func (n names) Tenant(namespace verify.Namespace) string {
	if strings.HasPrefix(string(namespace), "iris-") {
		return "iris"
	}
	return ""
}

// apiServer answers with constraints, and with namespaces two at a time. It counts requests by path.
func apiServer(t *testing.T, status int, asked map[string]int, constraints ...string) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		require.Equal(t, http.MethodGet, r.Method)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case status != http.StatusOK && strings.HasSuffix(r.URL.Path, "/verifiedimages"):
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, status)
		case strings.HasSuffix(r.URL.Path, "/verifiedimages"):
			items := []any{}
			for _, spec := range constraints {
				var c map[string]any
				require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: x}, spec: "+spec+"}"), &c))
				items = append(items, c)
			}
			_ = json.NewEncoder(w).
				Encode(map[string]any{"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "VerifiedImagesList", "metadata": map[string]any{}, "items": items})
		case r.URL.Query().Get("continue") == "":
			fmt.Fprint(w,
				`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"continue":"more"},"items":[{"metadata":{"name":"iris-api",`+
					`"labels":{"stage":"live"}}}]}`)
		default:
			fmt.Fprint(w,
				`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{},"items":[{"metadata":{"name":"iris-web","labels":{"stage":"test"}}},`+
					`{"metadata":{"name":"team-a"}}`)
			for i := range maxSeries + 7 {
				fmt.Fprintf(w, `,{"metadata":{"name":"iris-%04d"}}`, i)
			}
			fmt.Fprint(w, `,{"metadata":{"name":"ignored","labels":{"admission.gatekeeper.sh/ignore":""}}}]}`)
		}
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

const listed = "/apis/constraints.gatekeeper.sh/v1beta1/verifiedimages"

func metered(t *testing.T, config *rest.Config, cluster Cluster) (*Meter, *test.Hook) {
	t.Helper()
	log, hook := test.NewNullLogger()
	m, err := New(config, cluster, log, prometheus.NewRegistry())
	require.NoError(t, err)
	return m, hook
}

func TestANamespaceHasTheModeOfTheStrictestConstraintThatMatchesIt(t *testing.T) {
	const pods = `kinds: [{apiGroups: [""], kinds: [Pod]}]`
	for name, c := range map[string]struct {
		constraints []string
		want        string
	}{
		"no constraint":     {nil, "iris-api none, iris-web none, team-a none"},
		"dryrun everywhere": {[]string{`{enforcementAction: dryrun, match: {` + pods + `}}`}, "iris-api dryrun, iris-web dryrun, team-a dryrun"},
		"team by team": {[]string{`{enforcementAction: dryrun}`, `{enforcementAction: warn, match: {namespaces: ["iris-*"]}}`,
			`{match: {namespaces: [iris-web]}}`}, "iris-api warn, iris-web deny, team-a dryrun"},
		"excluded": {[]string{`{match: {excludedNamespaces: [team-a]}}`}, "iris-api deny, iris-web deny, team-a none"},
		"by labels": {[]string{`{enforcementAction: warn}`, `{match: {namespaceSelector: {matchLabels: {stage: live}}}}`},
			"iris-api deny, iris-web warn, team-a warn"},
		"some pods are not all":      {[]string{`{match: {labelSelector: {matchLabels: {a: b}}}}`}, "iris-api none, iris-web none, team-a none"},
		"Deployments are not enough": {[]string{`{match: {kinds: [{apiGroups: [apps], kinds: [Deployment]}]}}`}, "iris-api none, iris-web none, team-a none"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := map[string]int{}
			m, _ := metered(t, apiServer(t, http.StatusOK, asked, c.constraints...), names{"iris-api", "iris-web", "team-a", "ignored"})
			counts, err := m.look(t.Context())
			require.NoError(t, err)
			m.set(counts)
			var want strings.Builder
			want.WriteString("# HELP landwaiter_namespace_mode Namespaces by the strictest enforcementAction of the VerifiedImages constraints that match all their " +
				"pods: deny, warn, dryrun or none. Of the replica that leads.\n# TYPE landwaiter_namespace_mode gauge\n")
			for _, one := range strings.Split("ignored none, "+c.want, ", ") {
				namespace, mode, _ := strings.Cut(one, " ")
				fmt.Fprintf(&want, "landwaiter_namespace_mode{mode=%q,namespace=%q,tenant=%q} 1\n", mode, namespace, names{}.Tenant(verify.Namespace(namespace)))
			}
			require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(want.String())))
			require.Equal(t, 1, asked[listed])
			require.Equal(t, 2, asked["/api/v1/namespaces"], "pages")
		})
	}
}

func TestNamespacesPastTheLimitAreAddedUpByMode(t *testing.T) {
	var many names
	for i := range maxSeries + 7 {
		many = append(many, verify.Namespace(fmt.Sprintf("iris-%04d", i)))
	}
	m, _ := metered(t, apiServer(t, http.StatusOK, map[string]int{}, `{match: {namespaces: ["iris-0*"]}}`), many)
	counts, err := m.look(t.Context())
	require.NoError(t, err)
	require.Len(t, counts, maxSeries+1)
	require.Equal(t, 7, counts[series{"none", otherLabel, ""}])
	require.Equal(t, 1, counts[series{"deny", "iris-0999", "iris"}])
}

func TestOnlyTheReplicaThatLeadsHasModes(t *testing.T) {
	m, hook := metered(t, apiServer(t, http.StatusOK, map[string]int{}), names{"team-a"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Lead(ctx) }()
	require.Eventually(t, func() bool { return testutil.CollectAndCount(m) == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.Zero(t, testutil.CollectAndCount(m))
	require.Empty(t, hook.AllEntries())
}

func TestWithoutPermissionThereAreNoModesAndTheLogSaysSo(t *testing.T) {
	m, hook := metered(t, apiServer(t, http.StatusForbidden, map[string]int{}), names{"team-a"})
	m.set(map[series]int{{"deny", "team-a", ""}: 1})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Lead(ctx) }()
	require.Eventually(t, func() bool { return hook.LastEntry() != nil }, time.Minute, time.Millisecond)
	require.Zero(t, testutil.CollectAndCount(m), "what was seen earlier may be wrong by now")
	cancel()
	require.NoError(t, <-ended)
}

func TestWithoutTheTemplateNothingIsEnforced(t *testing.T) {
	m, _ := metered(t, apiServer(t, http.StatusNotFound, map[string]int{}), names{"team-a"})
	counts, err := m.look(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[series]int{{"none", "team-a", ""}: 1}, counts)
}
