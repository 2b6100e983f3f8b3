package gatekeeper_test

import (
	"testing"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

const head = `{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderResponse","response":`

func TestRefusesWhatNoAnswerMayBe(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":                     ``,
		"another kind":                `{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderRequest","response":{"idempotent":true}}`,
		"another version":             `{"apiVersion":"externaldata.gatekeeper.sh/v1","kind":"ProviderResponse","response":{"idempotent":true}}`,
		"not idempotent":              head + `{"systemError":"late"}}`,
		"items beside a system error": head + `{"idempotent":true,"systemError":"late","items":[{"key":"a","value":{}}]}}`,
	} {
		_, err := gatekeeper.Decode([]byte(body))
		require.Error(t, err, name)
	}
	response, err := gatekeeper.Decode([]byte(head + `{"idempotent":true,"items":[{"key":"a","value":{"isSuccess":true}}]}}`))
	require.NoError(t, err)
	verdict, _ := gatekeeper.Judge(gatekeeper.Items(response)["a"])
	require.Equal(t, gatekeeper.Allowed, verdict)
}

func TestOnlyASuccessThatIsExactlyTrueIsAllowed(t *testing.T) {
	for _, value := range []any{nil, "true", true, map[string]any{}, map[string]any{"isSuccess": "true"}, map[string]any{"isSuccess": 1},
		map[string]any{"isSuccess": false}} {
		verdict, _ := gatekeeper.Judge(externaldata.Item{Value: value})
		require.Equal(t, gatekeeper.Denied, verdict, "%v", value)
	}
	verdict, why := gatekeeper.Judge(externaldata.Item{Value: map[string]any{"isSuccess": true}, Error: "x"})
	require.Equal(t, gatekeeper.Refused, verdict)
	require.Equal(t, "x", why)
}
