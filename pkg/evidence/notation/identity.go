package notation

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"slices"
	"strings"
)

// identityOf names a signer as a trusted identity would: by the attributes of its subject,
// in an order of ours, because notation compares them in any order. A certificate that is
// renewed, or a second one, is the same signer. One without a subject is named by its key.
func identityOf(leaf *x509.Certificate) string {
	if len(leaf.Subject.Names) == 0 {
		return fingerprintOf(leaf)
	}
	var attributes []string
	for _, attribute := range leaf.Subject.Names {
		attributes = append(attributes, pkix.RDNSequence{{attribute}}.String())
	}
	slices.Sort(attributes)
	return subjectPrefix + strings.Join(attributes, ",")
}

// fingerprintOf returns the hash of a certificate's public key.
func fingerprintOf(leaf *x509.Certificate) string {
	sum := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
