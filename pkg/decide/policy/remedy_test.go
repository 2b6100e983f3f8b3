package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestAReasonThatEndsWithARemedyHasThatOne(t *testing.T) {
	for reason, want := range map[string]string{
		"r speaks plain HTTP, without TLS; serve it with TLS, or ask a cluster admin to set insecurePlainHTTP in a ClusterStore that lists it": "serve it with TLS, or ask a cluster admin to set insecurePlainHTTP in a ClusterStore that lists it",
		"its CA is unknown; add the CA to caBundle of the Store that lists r (looked at a; b)":                                                 "add the CA to caBundle of the Store that lists r",
		"app was not finished in time: r did not answer in time; try again":                                                                    "",
		"a refuses the connection: nothing listens there; start the registry, or correct the port in its name; b did not answer in time":       "",
		"start the registry": "",
		"":                   "",
	} {
		require.Equal(t, want, policy.RemedyOf(reason))
	}
}
