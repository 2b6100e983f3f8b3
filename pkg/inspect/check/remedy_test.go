package check

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// reasons returns every reason that a condition can have.
func reasons(t *testing.T) (list []policy.Reason) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../decide/policy/reason.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok {
			reason, err := strconv.Unquote(text.Value)
			require.NoError(t, err)
			list = append(list, policy.Reason(reason))
		}
		return true
	})
	require.Greater(t, len(list), 60)
	return list
}

func TestAResourceIsOnlyOpenedWhereItsOwnTextCanBeWrong(t *testing.T) {
	v := &view{Inventory: &Inventory{Options: Options{Namespace: "landwaiter-system"}}, serve: &program{account: "landwaiter"}}
	store := &v1beta1.TrustStore{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.KindTrustStore},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "keys"}}
	elsewhere := map[policy.Reason]string{
		policy.ReasonReferenceNotReady: "correct the resource that the message names",
		policy.ReasonUnreadable:        "Landwaiter's pods can reach it",
		policy.ReasonPending:           "read the logs of Landwaiter's pods",
		policy.ReasonNotDelegated:      "ask a cluster admin",
		policy.ReasonAccessDenied:      "the permission that the message names",
	}
	for _, reason := range reasons(t) {
		fix, command := v.remedyOf(store, reason, "said")
		if want, ok := elsewhere[reason]; ok {
			require.Contains(t, fix, want, reason)
			require.Empty(t, command, reason)
			continue
		}
		require.Equal(t, "kubectl edit truststore.landwaiter.dev keys --namespace=team-a", command, reason)
		require.Equal(t, reason == policy.ReasonNotFound, strings.Contains(fix, "create what the message names"), reason)
	}
	_, command := v.remedyOf(store, policy.ReasonAccessDenied, "it cannot be read; "+grantable+"x")
	require.Contains(t, command, "kubectl create rolebinding landwaiter-reference-reader --namespace=team-a ")
}

func TestWhatOnlyTheProcessKnowsIsNeverMendedByAnEditor(t *testing.T) {
	v := &view{Inventory: &Inventory{Options: Options{Namespace: "landwaiter-system"}}}
	var mute []string
	for _, row := range factRows() {
		command := ""
		if row.command != nil {
			command = row.command(v)
		}
		require.NotContains(t, command, "edit", row.id)
		if row.fix+command == "" {
			mute = append(mute, row.id)
		}
		require.NotEmpty(t, row.keep)
	}
	require.Equal(t, []string{ReferrersMissing}, slices.Compact(mute), "nothing mends it")
}
