package external

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Kind is the type of a source.
type Kind string

// The kinds of sources.
const (
	VaultKeys         Kind = "Vault keys"         // Address, Path, a credential "token": PEM public keys
	VaultCertificates Kind = "Vault certificates" // as above: PEM certificates
	KMS               Kind = "KMS"                // Address is a URI such as awskms:///alias/release: a PEM public key
	TUF               Kind = "TUF"                // Address of the mirror, Root: a trusted_root.json
	Registry          Kind = "registry"           // Path is ECR, ACR, GAR or GHCR, Address the host: a .dockerconfigjson
)

// Source is the location of trust material or a login, with the identity that fetches it. Two
// sources are equal if all their fields are.
type Source struct {
	// Owner is the namespace whose resource names the source.
	Owner verify.Namespace
	Kind  Kind
	// Address and Path depend on the kind.
	Address, Path string
	// Root is the initial root of a TUF repository; empty is Sigstore's.
	Root string
	// Authority is a PEM bundle of CAs for the server, in addition to the system's.
	Authority string
	// As is the identity that fetches. Nil sends no credentials.
	As Identity
}

// String describes the source without its credentials.
func (s Source) String() string {
	if s.Kind == TUF && s.Address == "" {
		return "Sigstore's TUF repository"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Kind, s.Address, s.Path))
}

// what names the content of the source, in a sentence.
func (s Source) what() string {
	if s.Kind == TUF {
		return "the root at " + cmp.Or(s.Address, PublicGoodHost)
	}
	return s.String()
}

// Fingerprint identifies the source and its credentials, without revealing them.
func (s Source) Fingerprint() string {
	as := fmt.Sprintf("%T", s.As)
	switch held := s.As.(type) {
	case given:
		as += string(held)
	case account:
		as += fmt.Sprintf("%q", held)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %q", s.Owner, s.Kind, s.Address, s.Path, s.Root, s.Authority, as))
	return hex.EncodeToString(sum[:])
}

// Credential returns one of the credentials, empty if it is missing.
func (s Source) Credential(name string) string {
	values, _, _ := held(s.As) // an unreadable one is empty
	return values[name]
}

// PublicGoodHost is the server of Sigstore's public-good root.
const PublicGoodHost = "tuf-repo-cdn.sigstore.dev"

// publicGood is Sigstore's public-good root, which everybody shares.
func publicGood() Source { return Source{Kind: TUF} }

// key returns the source to fetch. It is the source itself, except that Sigstore's
// public-good root, which hundreds of namespaces may want, is fetched once for all of them.
func (s Source) key() Source {
	if shared := (Source{Owner: s.Owner, Kind: TUF}); s == shared {
		return publicGood()
	}
	return s
}

// Value is the state of a source.
type Value struct {
	// Content is from the last successful fetch; nil if there was none or it is too old.
	Content []byte
	// FetchedAt is the time of that fetch.
	FetchedAt time.Time
	// Ends is when Content expires by itself, as a login does; zero is never.
	Ends time.Time
	// Roles are the metadata of a TUF repository that the content was verified with.
	Roles []TUFRole
	// KeptUntil is when the content no longer counts unless fetching works again. It is zero
	// while fetching works.
	KeptUntil time.Time
	// Err is why the last fetch failed, or why there is no content.
	Err error
}

// Fetched maps sources to their values.
type Fetched = map[Source]Value

// The audiences of tokens. They are fixed, so that a token for one service is useless at
// another, and at the API server in particular.
const (
	audienceAWS    = "sts.amazonaws.com"
	audienceAzure  = "api://AzureADTokenExchange"  // China and the US government have a suffix
	audienceGoogle = "https://iam.googleapis.com/" // and the provider
	audienceVault  = "vault://"                    // and the host, with its port if it has one
)

// Tokens gets tokens of ServiceAccounts from the Kubernetes API.
type Tokens interface {
	// Token returns a token with only this audience, which lives for minutes. The owner of the
	// resource may read its error.
	Token(ctx context.Context, namespace, name, audience string) (string, error)
}

// ErrNoRight means that this process may not get tokens of a ServiceAccount.
var ErrNoRight = errors.New("landwaiter has no permission to get its tokens")

// Federation names the accounts that trust the tokens of a ServiceAccount. Each kind of
// source uses its own fields.
type Federation struct {
	AWSRoleARN, AWSRegion                string
	AzureTenantID, AzureClientID         string
	GoogleProvider, GoogleServiceAccount string
	VaultRole, VaultMount                string
	VaultNamespace                       string // of Vault
}

// account is a ServiceAccount. Its fields are unexported, because only
// [ServiceAccount] decides whose accounts a resource may name.
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
		return "", problemf("a token of ServiceAccount %s/%s needs the Kubernetes API, and resources in files do without it: use secretRef",
			as.namespace, as.name)
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

// Identity is the identity that fetches a source: credentials in a resource, a ServiceAccount, or the
// pod of this process. The types are private, so only [Given], [ServiceAccount] and [Pod] create one.
// Nil sends no credentials, which is enough for public repositories.
type Identity interface{ identity() }

// given are credentials, as a JSON object of strings. It is comparable, as a [Source] is.
type given string

// pod is the identity of this process.
type pod struct{}

func (given) identity() {}
func (pod) identity()   {}

// String, GoString and MarshalText return placeholders.
func (given) String() string               { return "(secret)" }
func (given) GoString() string             { return "(secret)" }
func (given) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// Given returns the identity with credentials. It returns an error if there are none: an
// empty Secret must not mean "no credentials are needed".
func Given(credentials map[string]string) (Identity, error) {
	kept := make(map[string]string, len(credentials))
	for name, value := range credentials {
		if value = strings.TrimSpace(value); value != "" {
			kept[name] = value
		}
	}
	if len(kept) == 0 {
		return nil, errors.New("it holds no credentials")
	}
	text, err := json.Marshal(kept)
	return given(text), err
}

// Pod returns the identity of this process. It returns an error for a namespace: only
// resources of the cluster may use it.
func Pod(owner verify.Namespace) (Identity, error) {
	if owner != verify.Cluster {
		return nil, errors.New("a namespace's resource needs credentials of its own")
	}
	return pod{}, nil
}

// held returns the named credentials of an identity. Ambient says that it is the pod's
// identity, which has none.
func held(as Identity, needed ...string) (values map[string]string, ambient bool, err error) {
	switch as := as.(type) {
	case pod:
		return nil, true, nil
	case given:
		if err := json.Unmarshal([]byte(as), &values); err != nil {
			return nil, false, problem("the credentials cannot be read")
		}
		for _, name := range needed {
			if values[name] == "" {
				return nil, false, problemf("the credentials have no %s; needed: %s", name, strings.Join(needed, ", "))
			}
		}
		return values, false, nil
	case account:
		return nil, false, problem("a ServiceAccount is not supported here: use secretRef")
	}
	return nil, false, problem("there are no credentials")
}
