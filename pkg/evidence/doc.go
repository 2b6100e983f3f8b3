// Package evidence has no code of its own: its rooms check what was found about an image.
//
//   - cosign: cosign signatures, Sigstore bundles and attestations.
//   - notation: Notary Project signatures, and those of AWS Signer.
//   - revocation: OCSP responses and revocation lists, fetched before they are needed.
//
// A checker takes bytes and trust material and returns a finding. It never fails, and only nil as a
// refusal means that evidence counts.
package evidence
