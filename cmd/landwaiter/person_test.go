package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func right(verb, group, plural, namespace, name string) live.Right {
	return live.Right{Verb: verb, Resource: schema.GroupResource{Group: group, Resource: plural}, Namespace: namespace, Name: name}
}

func TestMissingRightsOfOneNamespaceAreOneLine(t *testing.T) {
	lines := live.Grouped([]live.Right{
		right("list", "landwaiter.dev", "tenants", "", ""),
		right("list", "landwaiter.dev", "verifiers", "a", ""),
		right("list", "landwaiter.dev", "stores", "a", ""),
		right("list", "openreports.io", "reports", "a", ""),
		right("get", "", "secrets", "a", "key"),
		right("get", "", "secrets", "a", "pull"),
	})
	require.Len(t, lines, 5)
	require.Contains(t, lines[0], "landwaiter-tenant-reader")
	require.Contains(t, lines[0], "you cannot list tenants.landwaiter.dev; only people who may know every team can")
	require.Contains(t, lines[1], "you cannot list verifiers, stores in namespace a; ask")
	require.Contains(t, lines[2], "you cannot list reports.openreports.io in namespace a; ask")
	require.Contains(t, lines[3], "--resource-name=key")
	require.Contains(t, lines[4], "--resource-name=pull")

	lines = live.Grouped([]live.Right{
		right("list", "landwaiter.dev", "clusterverifiers", "", ""),
		right("list", "landwaiter.dev", "clusterstores", "", ""),
		right("list", "landwaiter.dev", "stores", "", ""), // in all namespaces
	})
	require.Len(t, lines, 2, "another role grants them")
	require.Contains(t, lines[0], "you cannot list clusterverifiers, clusterstores; ask")
	require.Contains(t, lines[1], "ClusterRole landwaiter-reader")
}

func teamOf(name, home, namespace string) *v1beta1.Tenant {
	made := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Spec.HomeNamespace, made.Spec.Namespaces = home, []string{namespace}
	return made
}

func TestHomesOfOtherTenantsAreNotSaidToBeMissing(t *testing.T) {
	state := live.State{Namespaces: []verify.Namespace{"iris-web"}, Objects: resource.Objects{
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "iris-web"}}},
		Resources:  []v1beta1.Object{teamOf("iris", "iris", "iris-web"), teamOf("rose", "rose", "rose-web")},
	}}
	problem := func(name string, reason policy.Reason) resource.Problem {
		return resource.Problem{Source: policy.ObjectRef{Kind: v1beta1.KindTenant, Name: name}, Reason: reason}
	}
	all := []resource.Problem{problem("iris", policy.ReasonNotFound), problem("rose", policy.ReasonNotFound), problem("rose", policy.ReasonConflict)}
	require.Equal(t, []resource.Problem{all[0], all[2]}, ofNamespaces(state, all))
}

func TestOnlyWhatExistsCanBeDeleted(t *testing.T) {
	state := live.State{Namespaces: []verify.Namespace{"a"}, Objects: resource.Objects{
		Resources:  []v1beta1.Object{&v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "v"}}},
		Unreadable: []resource.Unreadable{{Source: policy.ObjectRef{Kind: "ClusterStore"}}},
	}}
	for text, says := range map[string]string{
		"verifier/v":         "",
		"verifier/w":         "--delete: Verifier a/w does not exist",
		"clusterverifier/v":  "--delete: ClusterVerifier v does not exist",
		"clusterstore/x":     "", // nobody knows
		"verifier/b/v":       "", // nobody looked
		"secret/unmentioned": "",
	} {
		ref, err := live.ParseDeletion(text, "a")
		require.NoError(t, err)
		if err := absent(state, []policy.ObjectRef{ref}); says == "" {
			require.NoError(t, err, text)
		} else {
			require.EqualError(t, err, says, text)
		}
	}
}

func TestWhatAPersonCannotReadIsSaidOnceBeforeTheAnswers(t *testing.T) {
	list := func(kind string) live.Right {
		return live.Right{Verb: "list", Resource: schema.GroupResource{Group: v1beta1.Group, Resource: kind}}
	}
	for name, c := range map[string]struct {
		unread   map[string]string // kinds and their plurals
		problems []resource.Problem
		says     []string
	}{
		"everything can be read": {},
		"only exceptions cannot": {unread: map[string]string{"ClusterException": "clusterexceptions"}},
		"two kinds of the cluster": {unread: map[string]string{"ClusterStore": "clusterstores", "ClusterVerifier": "clusterverifiers"}, says: []string{
			"you cannot read everything that decides in namespace team-a, so the images there are undecided:",
			"- you cannot list clusterverifiers, clusterstores; ask a cluster admin to bind ClusterRole landwaiter-cluster-reader",
			"with the role edit in the namespace, you can also ask the server, which creates nothing: " + live.State{}.AskServer("team-a", "")}},
		"a Secret": {
			problems: []resource.Problem{{Source: policy.ObjectRef{Kind: "Store", Namespace: "team-a", Name: "x"}, Reason: policy.ReasonUnreadable,
				Message: "you cannot get it"}}, says: []string{
				"with the role edit in the namespace, you can also ask the server, which creates nothing: " + live.State{}.AskServer("team-a", "")}},
	} {
		state := live.State{Namespaces: []verify.Namespace{"team-a"},
			Objects: resource.Objects{Person: true, Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}}}}
		for kind, plural := range c.unread {
			state.Rights = append(state.Rights, list(plural))
			state.Objects.Unreadable = append(state.Objects.Unreadable, resource.Unreadable{Source: policy.ObjectRef{Kind: kind}, Why: list(plural).String()})
		}
		snapshot, _ := resolve.Empty(resolve.Nowhere()).Next(resolve.Group(state.Objects), nil)
		require.Equal(t, c.says, unreadable(state, snapshot, c.problems), name)
	}
}

func TestCheckNamesTheRoleThatChecksTheRest(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t,
		show(&out, printedFindings{Unchecked: []printedUnchecked{{IDs: []string{"AuditOff", "CacheTTL"}, Missing: "list things", Why: "you cannot list things"}}}))
	require.Equal(t, "not checked: you cannot list things:\n    AuditOff, CacheTTL\nOnly those who look after the installation can check this: a cluster admin "+
		"gives them ClusterRole landwaiter-checker, which reads the rules of all teams.\n0 findings, 2 kinds not checked\n", out.String())
	out.Reset()
	require.NoError(t, show(&out, printedFindings{Unchecked: []printedUnchecked{{IDs: []string{"RedisEviction"}, Why: "it is not published"}}}))
	require.NotContains(t, out.String(), "landwaiter-checker")
}

// What a team writes into an object is never at the column of a fix, nor has letters that look like spaces.
func TestAMessageForgesNoFix(t *testing.T) {
	var out bytes.Buffer
	message := strings.Repeat("x", tableWidth-20) + " fix:\u2800\u2800curl\u2800-s fix: curl " + strings.Repeat("y", tableWidth-20) + " fix: curl"
	require.NoError(t, show(&out, printedFindings{Findings: []printedFault{{ID: "OtherAccount", Severity: "error", Message: message, Fix: "move it"}}}))
	fixes := 0
	for line := range strings.Lines(out.String()) {
		require.NotContains(t, line, "\u2800")
		if strings.HasPrefix(line, "  fix:") {
			fixes++
		}
	}
	require.Equal(t, 1, fixes, out.String())
}

func TestFindingsFitATerminalAndTheirCommandsAreOneLine(t *testing.T) {
	var out bytes.Buffer
	command := "kubectl patch " + strings.Repeat("x ", tableWidth)
	require.NoError(t,
		show(&out,
			printedFindings{Findings: []printedFault{{ID: "CacheTTL", Severity: "error", Message: strings.Repeat("word ", tableWidth), Why: "so", Command: command}}}))
	require.Contains(t, out.String(), "\n  fix: "+command+"\n")
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "  fix:") {
			require.LessOrEqual(t, len(line), tableWidth+1)
		}
	}
}

// kubeconfigOf writes a kubeconfig file with two clusters and two contexts.
func kubeconfigOf(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: one,
clusters: [{name: east, cluster: {server: "https://east.example.com"}}, {name: west, cluster: {server: "https://west.example.com"}}],
users: [{name: ann, user: {token: a}}, {name: bob, user: {token: b}}],
contexts: [{name: one, context: {cluster: east, user: ann, namespace: team-a}}, {name: two, context: {cluster: west, user: bob}}]}`), 0o600))
	return file
}

func TestFlagsOfKubectlSayWhichClusterIsAskedAndAsWhom(t *testing.T) {
	file := kubeconfigOf(t)
	for name, c := range map[string]struct {
		args                              []string
		all                               bool
		host, token, as, namespace, fails string
		groups                            []string
	}{
		"the current context": {host: "https://east.example.com", token: "a", namespace: "team-a"},
		"another context":     {args: []string{"--context", "two"}, host: "https://west.example.com", token: "b", namespace: "default"},
		"another cluster":     {args: []string{"--cluster", "west"}, host: "https://west.example.com", token: "a", namespace: "team-a"},
		"another user":        {args: []string{"--user", "bob"}, host: "https://east.example.com", token: "b", namespace: "team-a"},
		"as somebody else": {args: []string{"--as", "eve", "--as-group", "devs", "--as-group", "ops"}, host: "https://east.example.com", token: "a",
			as: "eve", groups: []string{"devs", "ops"}, namespace: "team-a"},
		"another namespace":         {args: []string{"-n", "team-b"}, host: "https://east.example.com", token: "a", namespace: "team-b"},
		"all namespaces":            {all: true, host: "https://east.example.com", token: "a"},
		"a namespace and all":       {args: []string{"-n", "team-b"}, all: true, fails: "cannot be used together"},
		"a context that is not one": {args: []string{"--context", "three"}, fails: `context "three" does not exist`},
		"a namespace that is none":  {args: []string{"-n", "Team_B"}, fails: "--namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			by := newPerson()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			by.AddFlags(flags)
			require.NoError(t, flags.Parse(append([]string{"--kubeconfig", file}, c.args...)))
			config, namespace, err := by.scope(c.all)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{c.host, c.token, c.as, c.namespace}, []string{config.Host, config.BearerToken, config.Impersonate.UserName, string(namespace)})
			require.ElementsMatch(t, c.groups, config.Impersonate.Groups)
			require.Regexp(t, "^landwaiter/", config.UserAgent)
		})
	}
}

// Where there is no kubeconfig, kubectl asks localhost.
func TestWithoutAKubeconfigNoClusterIsAsked(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	by := newPerson()
	_, _, err := by.scope(true)
	require.ErrorIs(t, err, errNoCluster)
	require.ErrorContains(t, err, "use --kubeconfig FILE and --context NAME")
	*by.APIServer = "https://east.example.com"
	config, _, err := by.scope(true)
	require.NoError(t, err)
	require.Equal(t, "https://east.example.com", config.Host)
}
