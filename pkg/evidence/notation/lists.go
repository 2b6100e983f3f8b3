package notation

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/notaryproject/notation-core-go/revocation/crl"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// listScheme is the scheme of the addresses that stand for lists of the Verifier. No
// request is ever made for one.
const listScheme = "landwaiter-list:"

// namedLists is a chain in which certificates that lists of the Verifier are about name
// these lists, and nothing else, so that the library judges them as it judges fetched ones:
// signature, dates and entries.
type namedLists struct {
	online crl.Fetcher
	chain  []*x509.Certificate
	lists  []*x509.RevocationList // by certificate; nil: it is asked for as usual
}

// withLists names the newest list about each certificate of a chain.
func (c *Checker) withLists(chain []*x509.Certificate, online crl.Fetcher) namedLists {
	n := namedLists{online: online, chain: slices.Clone(chain), lists: make([]*x509.RevocationList, len(chain))}
	for i := range len(chain) - 1 {
		for _, list := range c.lists {
			if parsed := list.Parsed(); list.About(chain[i], chain[i+1]) && (n.lists[i] == nil || parsed.ThisUpdate.After(n.lists[i].ThisUpdate)) {
				n.lists[i] = parsed
			}
		}
		if n.lists[i] != nil {
			named := *chain[i]
			named.OCSPServer, named.CRLDistributionPoints = nil, []string{listScheme + strconv.Itoa(i)}
			n.chain[i] = &named
		}
	}
	return n
}

// Fetch implements [crl.Fetcher].
func (n namedLists) Fetch(ctx context.Context, address string) (*crl.Bundle, error) {
	number, ours := strings.CutPrefix(address, listScheme)
	if !ours {
		return n.online.Fetch(ctx, address)
	}
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(n.lists) || n.lists[i] == nil {
		return nil, fmt.Errorf("there is no list %.100q", number) // a certificate of the evidence names it
	}
	return &crl.Bundle{BaseCRL: n.lists[i]}, nil
}

// explainList says why a list of the Verifier does not tell whether a certificate is revoked.
func explainList(name string, list *x509.RevocationList) error {
	return verify.Refuse(policy.ReasonRevocationUnknown,
		fmt.Sprintf("it is not known whether certificate %q is revoked: the Verifier's revocation list, which ends at %s, has ended, is not signed by the issuer, or has an extension that is not understood",
			name, list.NextUpdate.UTC().Format(time.RFC3339)),
		"put the issuer's current list into the trust store that spec.notation.revocationListTrustStoreRefs names")
}
