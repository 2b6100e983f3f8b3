package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/provider"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/edge"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// denying denies every image: the zero Verdict does.
type denying struct{}

func (denying) Verify(_ context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	return verify.Result{Namespace: namespace, Reference: ref}
}

func (denying) Account(namespace verify.Namespace) verify.Account { return namespace.Account() }

func (denying) Recall(verify.Namespace, image.Reference) (verify.Result, bool) {
	return verify.Result{}, false
}

func (denying) Resolve(_ context.Context, _ verify.Namespace, ref image.Reference) (image.Reference, error) {
	return ref, nil
}

func TestTheDemoEndsWithTheExpectedVerdicts(t *testing.T) {
	var out, complaints bytes.Buffer
	require.NoError(t, run(t.Context(), &out, &complaints, true), complaints.String())
	for _, line := range []string{
		`VERDICT +NAMESPACE +COLD +WARM +WHAT +KEY +WHY`,
		`allowed +team-a .*signed by team-a with cosign`,
		`denied +team-b .*the same image, another team`,
	} {
		require.Regexp(t, line, out.String())
	}
	require.NotContains(t, out.String(), "expected")
	require.Empty(t, complaints.String())
}

func TestAnUnexpectedVerdictFailsTheDemo(t *testing.T) {
	client := edge.Start(t, denying{}, provider.Options{}).Client
	var out bytes.Buffer
	err := table(t.Context(), &out, client, []example.Question{
		{Title: "denied", Key: "[team-a]r.example.com/app:v1", Want: gatekeeper.Denied},
		{Title: "not allowed", Key: "[team-a]r.example.com/app:v2", Want: gatekeeper.Allowed},
	})
	require.ErrorContains(t, err, "1 verdicts were not the expected ones")
	require.Contains(t, out.String(), "denied then denied, expected allowed")
}
