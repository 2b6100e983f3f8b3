package trust

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// SigstoreRoot is a trusted root for keyless signatures: CAs,
// transparency logs and timestamp authorities. It is immutable.
type SigstoreRoot = root.TrustedRoot

// ParseSigstoreRoot parses a trusted_root.json (sigstore_trustroot.proto, media
// type application/vnd.dev.sigstore.trustedroot+json;version=0.1 and later) of at
// most 256 KiB. It refuses a root with neither a CA nor a log, which
// could not vouch for any signature.
func ParseSigstoreRoot(text []byte) (parsed *SigstoreRoot, err error) {
	if len(text) > maxRootInput {
		return nil, fmt.Errorf("the trusted root is %d bytes large, the limit is %d", len(text), maxRootInput)
	}
	defer func() {
		if recover() != nil { // the library does not check every index
			parsed, err = nil, errors.New("the trusted root is malformed")
		}
	}()
	parsed, err = root.NewTrustedRootFromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the trusted root cannot be read (trusted_root.json, as cosign trusted-root create writes it): %w", err)
	}
	if len(parsed.FulcioCertificateAuthorities())+len(parsed.RekorLogs()) == 0 {
		return nil, errors.New("the trusted root has neither a CA nor a log, so it could vouch for nothing")
	}
	return parsed, nil
}

// TimestampRoots returns the root certificates of a root's timestamp authorities as PEM
// text, each once; nil if there are none.
func TimestampRoots(r *SigstoreRoot) []byte {
	var text []byte
	for _, authority := range r.TimestampingAuthorities() {
		a, ok := authority.(*root.SigstoreTimestampingAuthority)
		if !ok || a.Root == nil {
			continue
		}
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Root.Raw})
		if !bytes.Contains(text, block) {
			text = append(text, block...)
		}
	}
	return text
}
