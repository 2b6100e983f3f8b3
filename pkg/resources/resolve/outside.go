package resolve

import (
	"net/http"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Outside holds the network access of compiled resources. Its functions are called
// for every namespace and must be cheap.
type Outside struct {
	// Registry returns a registry client with one namespace's access.
	Registry func(registry.Access) verify.Registry
	// Revocation returns the transport for one namespace's revocation checks. It
	// never blocks on the network.
	Revocation func(verify.Namespace) http.RoundTripper
	// AWSSigner returns the revocations of a signature that were fetched from AWS Signer for a
	// namespace with an identity. Nil means that AWS Signer is not available.
	AWSSigner func(verify.Namespace, external.Identity) external.RevokedOf
	// Exceptions are an admin's limits on exceptions.
	Exceptions resource.ExceptionLimits
	// AllFaults asks for a Problem for each fault of a resource, not only for the first.
	AllFaults bool
}

// Nowhere returns an Outside without network access, for inspecting objects. It asks for all
// faults.
func Nowhere() Outside {
	return Outside{
		Registry:   func(registry.Access) verify.Registry { return nil },
		Revocation: func(verify.Namespace) http.RoundTripper { return nil },
		AWSSigner:  func(verify.Namespace, external.Identity) external.RevokedOf { return nil },
		AllFaults:  true,
	}
}

func (outside Outside) revokers() compile.Revokers {
	return compile.Revokers{Revocation: outside.Revocation, AWSSigner: outside.AWSSigner}
}
