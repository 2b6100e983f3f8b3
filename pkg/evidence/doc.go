// Package evidence has no code of its own. Its packages check the evidence for an image.
//
//   - breadth: who else an identity of a keyless signer lets in.
//   - cosign: cosign signatures, Sigstore bundles and attestations.
//   - notation: Notary Project signatures, and those of AWS Signer.
//   - revocation: OCSP responses and revocation lists, fetched before they are needed.
//
// A checker takes bytes and trust material and returns a proof that names the signer, or an error that
// says why the evidence does not count.
package evidence
