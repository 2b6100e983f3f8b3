//go:build e2e || nightly

package teams

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// take asks for a token of an account.
func take(namespace, name string, seconds int64, audiences ...string) request {
	return func(ctx context.Context, c client.Client) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}}
		return c.SubResource("token").Create(ctx, account, asked, client.DryRunAll)
	}
}

// attacksAsLandwaiter are those of somebody who has taken over its account: test/evidence
// has more of them.
func attacksAsLandwaiter() []attack {
	const rule = "tokens"
	who := accountOf(suite.System, "landwaiter")
	return []attack{
		{"take a token for the API server", who, rule, "", "not for https://kubernetes.default.svc", take("iris-green", "iris-green", 600)},
		{"take one for another service", who, rule, "", "not for https://example.com", take("iris-green", "iris-green", 600, "https://example.com")},
		{"take one for a day", who, rule, "", "for an hour at most", take("iris-green", "iris-green", 24*3600, "sts.amazonaws.com")},
		{"take the operator's token by a Secret", who, "secrets", "", "no Secret but landwaiter-tls in namespace landwaiter-system, and not landwaiter-system/other",
			create("{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: landwaiter-system, name: other, annotations: " +
				"{kubernetes.io/service-account.name: landwaiter-operator}}}")},
		{"take one of any account", who, rule, "", "every account in namespace iris-red", take("iris-red", "iris-red", 600, "sts.amazonaws.com")},
	}
}
