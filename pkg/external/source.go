package external

import (
	"fmt"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Kind is what is asked.
type Kind string

// The kinds of sources.
const (
	VaultKeys         Kind = "Vault keys"         // Address, Path, Credentials["token"]: PEM public keys
	VaultCertificates Kind = "Vault certificates" // the same: PEM certificates
	KMS               Kind = "KMS"                // Address is a URI such as awskms:///alias/release: a PEM public key
	TUF               Kind = "TUF"                // Address of the mirror, Root: a trusted_root.json
	Registry          Kind = "registry"           // Path is ECR, ACR or GAR, Address the host: a .dockerconfigjson
)

// Secret is text that is never printed.
type Secret string

// String and GoString keep the text out of messages and logs.
func (Secret) String() string { return "(secret)" }

// GoString keeps the text out of messages and logs.
func (Secret) GoString() string { return "(secret)" }

// Source says where material is, and how to get at it. Sources are equal if they
// are the same in all.
type Source struct {
	// Owner is the namespace whose resource names the source.
	Owner verify.Namespace
	Kind  Kind
	// Address and Path are as the kind says.
	Address, Path string
	// Root is what a TUF repository is trusted by; empty is Sigstore's.
	Root string
	// Authority is PEM certificates for the server, besides the system's.
	Authority string
	// Credentials are what the owner gives, as a JSON object of texts; empty means
	// those of this process, where the kind has such.
	Credentials Secret
}

// String says what it is without what is secret.
func (s Source) String() string {
	if s.Kind == TUF && s.Address == "" {
		return "Sigstore's TUF repository"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Kind, s.Address, s.Path))
}

// publicGood is Sigstore's own root, which is the same for everybody.
func publicGood() Source { return Source{Kind: TUF} }

// key is what tells values apart: each owner's are its own, but for Sigstore's
// public-good root, which hundreds of namespaces may want and which is fetched once
// for all of them.
func (s Source) key() Source {
	if anybodys := (Source{Owner: s.Owner, Kind: TUF}); s == anybodys {
		return publicGood()
	}
	return s
}

// Value is what is known of a source.
type Value struct {
	// Content is the last good one, nil if there is none or it is too old.
	Content []byte
	// FetchedAt is when it was fetched.
	FetchedAt time.Time
	// Err is why there is nothing newer; without content, why there is nothing.
	Err error
}
