package external

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Kind says what a source is.
type Kind string

// The kinds of sources.
const (
	VaultKeys         Kind = "Vault keys"         // Address, Path, a credential "token": PEM public keys
	VaultCertificates Kind = "Vault certificates" // the same: PEM certificates
	KMS               Kind = "KMS"                // Address is a URI such as awskms:///alias/release: a PEM public key
	TUF               Kind = "TUF"                // Address of the mirror, Root: a trusted_root.json
	Registry          Kind = "registry"           // Path is ECR, ACR, GAR or GHCR, Address the host: a .dockerconfigjson
)

// Source says where trust material or a login is, and how to get it. Two sources
// are equal if all their fields are.
type Source struct {
	// Owner is the namespace whose resource names the source.
	Owner verify.Namespace
	Kind  Kind
	// Address and Path mean what the kind says.
	Address, Path string
	// Root is the initial root of a TUF repository; empty is Sigstore's.
	Root string
	// Authority is a PEM bundle of CAs for the server, in addition to the system's.
	Authority string
	// As is who asks. Nil is nobody.
	As Identity
}

// String describes the source without its credentials.
func (s Source) String() string {
	if s.Kind == TUF && s.Address == "" {
		return "Sigstore's TUF repository"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Kind, s.Address, s.Path))
}

// Fingerprint identifies the source and its credentials, without showing them.
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

// Credential returns one of the credentials, empty if there is none of that name.
func (s Source) Credential(name string) string {
	values, _, _ := held(s.As) // an unreadable one holds nothing
	return values[name]
}

// PublicGoodHost is the server of Sigstore's public-good root.
const PublicGoodHost = "tuf-repo-cdn.sigstore.dev"

// publicGood is Sigstore's public-good root, which is the same for everybody.
func publicGood() Source { return Source{Kind: TUF} }

// key returns the source that is fetched. It is the source itself, except that
// Sigstore's public-good root, which hundreds of namespaces may want, is fetched
// once for all of them.
func (s Source) key() Source {
	if shared := (Source{Owner: s.Owner, Kind: TUF}); s == shared {
		return publicGood()
	}
	return s
}

// Value is what is known of a source.
type Value struct {
	// Content is from the last good fetch; nil if there was none or it is too old.
	Content []byte
	// FetchedAt is the time of that fetch.
	FetchedAt time.Time
	// Ends is when Content stops working by itself, as a login does; zero is never.
	Ends time.Time
	// Roles are the metadata of a TUF repository that the content was verified with.
	Roles []TUFRole
	// KeptUntil is when the content stops to count unless fetching works again. It is zero
	// while fetching works.
	KeptUntil time.Time
	// Err is why the last fetch failed, or why there is no content.
	Err error
}
