package external

import (
	"context"
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// The audiences of tokens. They are fixed, so that a token that is meant for one service
// is of no use at another, and at the API server least of all.
const (
	audienceAWS    = "sts.amazonaws.com"
	audienceAzure  = "api://AzureADTokenExchange"  // China and the US government have a suffix
	audienceGoogle = "https://iam.googleapis.com/" // and the provider
	audienceVault  = "vault://"                    // and the host, with its port if it has one
)

// Tokens gets tokens of ServiceAccounts from the Kubernetes API.
type Tokens interface {
	// Token returns a token with this audience alone, which lives for minutes. The owner
	// of the resource may read its error.
	Token(ctx context.Context, namespace, name, audience string) (string, error)
}

// ErrNoRight means that this process may not get tokens of a ServiceAccount.
var ErrNoRight = errors.New("landwaiter has no permission to get its tokens")

// Federation says who trusts the tokens of a ServiceAccount, and for what. Each kind of
// source uses its own part.
type Federation struct {
	AWSRoleARN, AWSRegion                string
	AzureTenantID, AzureClientID         string
	GoogleProvider, GoogleServiceAccount string
	VaultRole, VaultMount                string
	VaultNamespace                       string // of Vault
}

// account is a ServiceAccount. Its fields are exported for no one: only [ServiceAccount]
// decides whose accounts a resource may name.
type account struct {
	namespace, name string
	federation      Federation
}

func (account) identity() {}

// ServiceAccount returns the identity of a ServiceAccount. It returns an error if a
// namespace's resource names an account of another namespace.
func ServiceAccount(owner verify.Namespace, namespace, name string, federation Federation) (Identity, error) {
	switch {
	case namespace == "" || name == "":
		return nil, errors.New("the reference to a ServiceAccount needs a namespace and a name")
	case owner != verify.Cluster && namespace != string(owner):
		return nil, fmt.Errorf("a resource of namespace %s cannot act as a ServiceAccount of namespace %s", owner, namespace)
	}
	return account{namespace: namespace, name: name, federation: federation}, nil
}

// token returns a token of an account for one audience.
func (n network) token(ctx context.Context, as account, audience string) (string, error) {
	if n.tokens == nil {
		return "", problemf("a token of ServiceAccount %s/%s needs the Kubernetes API, and resources in files do without it: use secretRef", as.namespace, as.name)
	}
	token, err := n.tokens.Token(ctx, as.namespace, as.name, audience)
	if err != nil {
		return "", ownWords{err}
	}
	if token == "" {
		return "", problemf("the Kubernetes API gave no token of ServiceAccount %s/%s", as.namespace, as.name)
	}
	return token, nil
}

// ownWords is an error of [Tokens], which may be shown.
type ownWords struct{ error }

// Unwrap returns the error.
func (o ownWords) Unwrap() error { return o.error }
