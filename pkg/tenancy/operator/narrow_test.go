package operator

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestWhatOthersAddedToAnObjectOfThePlatformIsTakenOut(t *testing.T) {
	for about, c := range map[string]struct {
		kind, wanted, live string
		patch              string // "" for none
	}{
		"a variable":         {"ConfigMap", "data: {A: '1'}", "data: {A: '1', B: '2'}", `{"data":{"B":null}}`},
		"the same variables": {"ConfigMap", "data: {A: '1'}", "data: {A: '1'}", ""},
		"a resource in the quota": {"ResourceQuota", "spec: {hard: {pods: '5'}}", "spec: {hard: {pods: '5', services: '0'}, scopes: []}",
			`{"spec":{"hard":{"services":null}}}`},
		"what a policy allows": {"NetworkPolicy", "spec: {podSelector: {}}", "spec: {podSelector: {}, ingress: [{}]}", `{"spec":{"ingress":null}}`},
		"a source of others": {"Kustomization", "spec: {sourceRef: {kind: GitRepository, name: default}}",
			"spec: {sourceRef: {kind: GitRepository, name: default, namespace: flux-system}, wait: true}", `{"spec":{"sourceRef":{"namespace":null}}}`},
		"labels of an account":     {"ServiceAccount", "{}", "metadata: {labels: {a: b}}", ""},
		"data in bytes is no text": {"ConfigMap", "data: {A: '1'}", "{data: {A: '1'}, binaryData: {B: eA==}}", ""},
	} {
		t.Run(about, func(t *testing.T) {
			object := func(text string) *unstructured.Unstructured {
				made := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal([]byte(text), &made.Object))
				made.SetAPIVersion("v1")
				made.SetKind(c.kind)
				return made
			}
			sent := ""
			funcs := interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, patch client.Patch, _ ...client.PatchOption) error {
				text, err := patch.Data(nil)
				require.NoError(t, err)
				content := map[string]any{}
				require.NoError(t, json.Unmarshal(text, &content))
				delete(content, "metadata")
				text, err = json.Marshal(content)
				require.NoError(t, err)
				sent = string(text)
				return nil
			}}
			for _, dry := range []bool{true, false} {
				narrowed, err := New(fakeClient(t, funcs), Options{DryRun: dry}).narrow(t.Context(), object(c.wanted), object(c.live))
				require.NoError(t, err)
				require.Equal(t, c.patch != "", narrowed, "also a dry run says so")
				if dry {
					require.Empty(t, sent)
				}
			}
			require.Equal(t, c.patch, sent)
		})
	}
}

// A file has two Tenants that name one namespace; nothing of it has been written yet.
func TestADryRunKnowsTheTenantsThatItWouldHaveWritten(t *testing.T) {
	e := New(fakeClient(t, interceptor.Funcs{}), Options{DryRun: true})
	first, second := team("first", "shared"), team("second", "shared")
	first.CreationTimestamp.Reset()
	second.CreationTimestamp.Reset()
	for i, tenant := range []*v1beta1.Tenant{first, second} {
		problems, err := e.Refusals(t.Context(), tenant)
		require.NoError(t, err)
		require.Len(t, problems, i, "%+v", problems)
		for _, problem := range problems {
			require.Equal(t, policy.ReasonNotOwned, problem.Reason)
			require.Contains(t, problem.Message, "namespace shared belongs to Tenant first")
		}
		e.Assume(tenant)
	}
}
