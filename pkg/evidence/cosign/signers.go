package cosign

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Key is one trusted public key.
type Key struct {
	// Name is the source of the key in messages, such as "TrustStore
	// team-a/team-keys".
	Name string
	// Public is an *ecdsa.PublicKey (P-256, P-384, P-521), an ed25519.PublicKey,
	// or an *rsa.PublicKey of at least 2048 bits (PKCS #1 v1.5).
	Public crypto.PublicKey
	// Fingerprint identifies the signer in findings.
	Fingerprint string
	// Hash is the signer's hash algorithm: SHA-256, SHA-384 or SHA-512. Zero means
	// SHA-256, and for ECDSA P-384 and P-521 and RSA of 3072 and 4096 bits also the hash of
	// that strength. Ed25519 keys ignore it.
	Hash crypto.Hash
}

// Signers defines whose signatures count: either trusted keys, or identities that a Sigstore
// root certifies. Image signatures and attestations share it.
type Signers struct {
	// Keys are the trusted keys, 1 to 64; any one of them suffices.
	Keys []Key
	// Log is a Sigstore root whose transparency logs must contain signatures by keys. It has at
	// least one log. Signatures by identities must be in a log of Keyless.Root.
	Log root.TrustedMaterial
	// Keyless trusts identities instead of keys. Exactly one of Keys and Keyless is set.
	Keyless *Keyless
	// InsecureIgnoreLog accepts signatures that are in no transparency log. With keys,
	// exactly one of Log and InsecureIgnoreLog is set. With identities, a timestamp
	// authority must then vouch for the time of signing.
	InsecureIgnoreLog bool
}

// signers verifies who made a signature.
type signers struct {
	keys       []trustedKey
	logged     bool        // signatures must be in a log
	identities *identities // nil if keys are trusted
}

// newSigners returns an error if there are no keys and no identities, or too many, if one of
// them is not supported, or if options do not say which log counts.
func newSigners(options Signers) (*signers, error) {
	s := &signers{logged: !options.InsecureIgnoreLog}
	switch {
	case len(options.Keys) == 0 && options.Keyless == nil:
		return nil, errors.New("a cosign verifier without keys could prove nothing")
	case options.Keyless != nil && (len(options.Keys) > 0 || options.Log != nil):
		return nil, errors.New("a cosign verifier has either keys or identities")
	case options.Keyless != nil:
		var err error
		if s.identities, err = newIdentities(*options.Keyless, s.logged); err != nil {
			return nil, err
		}
		return s, nil
	case options.Log == nil && s.logged:
		return nil, errors.New("a cosign verifier with keys needs the transparency logs that signatures must be in, or has to ignore logs")
	case options.Log != nil && !s.logged:
		return nil, errors.New("a cosign verifier cannot both name transparency logs and ignore them")
	case len(options.Keys) > maxKeys:
		return nil, fmt.Errorf("a cosign verifier has %d keys, the limit is %d", len(options.Keys), maxKeys)
	}
	for _, key := range options.Keys {
		trusted, err := newTrustedKey(key, options.Log)
		if err != nil {
			return nil, fmt.Errorf("key %s of %s: %w", key.Fingerprint, key.Name, err)
		}
		s.keys = append(s.keys, trusted)
	}
	return s, nil
}

// signer is the author of a verified signature.
type signer struct {
	id      string         // differs between signers
	message string         // one sentence
	facts   map[string]any // for the extensions of the finding
}

// proof is the last step of every check: it returns the proof that s signed a layer, an
// attestation of the given type or, without one, a signature.
func (s signer) proof(layer digest.Digest, predicateType string) policy.Proof {
	facts := map[string]any{"signatureDigest": layer.String(), "isSuccess": true}
	message := s.message
	if predicateType != "" {
		facts["predicateType"], facts["signer"] = predicateType, s.id
		message = "attestation of type " + predicateType + " verified, signed by " + s.id
	}
	maps.Copy(facts, s.facts)
	return policy.NewProof(s.id, message, map[string]any{"signatures": []map[string]any{facts}})
}

func (k trustedKey) signer() signer {
	return signer{id: k.Fingerprint, message: fmt.Sprintf("signature verified by key %s of %s", k.Fingerprint, k.Name),
		facts: map[string]any{"keyFingerprint": k.Fingerprint}}
}

// signerOf verifies a bundle as a signature of want and returns its signer. The caller
// checks that the statement, if there is one, is about want.
func (s *signers) signerOf(ctx context.Context, parsed parsedBundle, want digest.Digest) (signer, error) {
	if s.identities != nil {
		if err := verify.Hold(ctx, parsed.memory); err != nil {
			return signer{}, err
		}
		return s.identities.checkIdentity(ctx, parsed, want)
	}
	content := contentOf(parsed.signed)
	if parsed.message {
		// Given only a digest, the library verifies a plain Ed25519 signature over no
		// bytes at all: then no key matches.
		var err error
		if content, err = contentOfDigest(want); err != nil {
			return signer{}, malformed("the image to check has a damaged digest")
		}
	}
	key, by, ok, err := s.match(ctx, content, parsed.signature)
	if err != nil {
		return signer{}, err
	}
	if ok {
		if err := verify.Hold(ctx, parsed.memory); err != nil {
			return signer{}, err
		}
		target, artifact, err := parsed.target(want)
		if err != nil {
			return signer{}, malformed("the image to check has a damaged digest")
		}
		if err := by.verifyBundle(target, artifact); err != nil {
			return signer{}, s.refusedThough(key, parsed.Bundle, err)
		}
		return key.signer(), nil
	}
	return signer{}, s.unmatched(ctx, content, parsed.signature, parsed.hint)
}

// refusedThough says why the library refuses a signature that a trusted key has made.
func (s *signers) refusedThough(key trustedKey, content *bundle.Bundle, err error) error {
	entries, unread := content.TlogEntries()
	switch {
	case errors.Is(err, errPanic):
		return malformed("the bundle is malformed")
	case s.logged && unread == nil && len(entries) == 0:
		return verify.Refuse(policy.ReasonUntrusted,
			fmt.Sprintf("the signature by key %s of %s is in no transparency log, and the Verifier demands an entry in one",
				key.Fingerprint, key.Name),
			"sign with a transparency log, or use a Verifier with keys.insecureIgnoreTransparencyLog")
	case s.logged:
		return verify.Refuse(policy.ReasonUntrusted,
			fmt.Sprintf("the log entry of the signature by key %s of %s does not hold: %s", key.Fingerprint, key.Name, quote(err)),
			"sign with a transparency log that the Verifier trusts, or name its root in keys.rootTrustStoreRef")
	}
	return malformed(fmt.Sprintf("the signature by key %s of %s is in a bundle that cannot be verified: %s", key.Fingerprint,
		key.Name, quote(err)))
}

// unmatched says why none of the keys made a signature. The bundle's key hint, which may be empty, is not trusted: it
// only selects the words.
func (s *signers) unmatched(ctx context.Context, content signedContent, signature []byte, hint string) error {
	named := slices.DeleteFunc(slices.Clone(s.keys), func(key trustedKey) bool { return key.hint != hint })
	suspects := named
	if len(named) == 0 && len(s.keys) <= maxSuspects {
		suspects = s.keys
	}
	for _, key := range suspects {
		if err := verify.Step(ctx); err != nil {
			return err
		}
		if key.padded(content, signature) {
			return verify.Refuse(policy.ReasonUnsupported,
				fmt.Sprintf("the signature by key %s of %s has the padding RSA-PSS, which is not supported", key.Fingerprint, key.Name),
				"sign with an RSA key for the padding PKCS#1 v1.5, or with an ECDSA key")
		}
		if hash := key.otherHash(content, signature); hash != 0 {
			return verify.Refuse(policy.ReasonUnsupported,
				fmt.Sprintf("the signature by key %s of %s uses %s, which is not accepted for this key", key.Fingerprint, key.Name, hash),
				fmt.Sprintf("sign with the hash that is usual for the key, or set hash: %s in the TrustStore with the key",
					strings.ReplaceAll(hash.String(), "-", "")))
		}
	}
	switch {
	case len(named) == 0:
		return s.wrongKey()
	case content.sum(crypto.SHA256) == nil || content.message == nil && named[0].algorithms[0].plain != nil:
		return unsupported()
	}
	return tampered(fmt.Sprintf("the bundle names key %s of %s, but its content is not what that key signed",
		named[0].Fingerprint, named[0].Name))
}

// padded reports whether k made a signature over content with RSA-PSS, as some key management services do.
func (k trustedKey) padded(content signedContent, signed []byte) bool {
	public, ok := k.Public.(*rsa.PublicKey)
	return ok && slices.ContainsFunc([]crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}, func(hash crypto.Hash) bool {
		sum := content.sum(hash)
		return sum != nil && rsa.VerifyPSS(public, hash, sum, signed, nil) == nil
	})
}

// otherHash returns the hash with which k made a signature over content although that hash is not accepted,
// or zero.
func (k trustedKey) otherHash(content signedContent, signed []byte) crypto.Hash {
	for _, hash := range []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512} {
		if slices.ContainsFunc(k.algorithms, func(a algorithm) bool { return a.hash == hash || a.plain != nil }) {
			continue
		}
		verifier, err := loadVerifier(k.Public, hash)
		if err == nil && (algorithm{verifier: verifier, hash: hash}).verifies(content, signed) {
			return hash
		}
	}
	return 0
}

// verifyBundle verifies a bundle against an artifact with one key.
func (a algorithm) verifyBundle(content *bundle.Bundle, artifact bundleverify.ArtifactPolicyOption) error {
	return guard(func() error {
		_, err := a.bundles.Verify(content, bundleverify.NewPolicy(artifact, bundleverify.WithKey()))
		return err
	})
}

func (s *signers) wrongKey() error {
	stores := s.stores()
	fix := "sign the image with a key of " + stores
	// whose keys count for all teams
	if !slices.ContainsFunc(s.keys, func(k trustedKey) bool { return strings.HasPrefix(k.Name, "Cluster") }) {
		fix += "; only if you know the signer, have their public key added there"
	}
	return verify.Refuse(policy.ReasonWrongKey, fmt.Sprintf("no key of %s verifies the signature", stores), fix)
}

// stores lists the sources of the keys, without duplicates.
func (s *signers) stores() string {
	var names []string
	for _, key := range s.keys {
		if !slices.Contains(names, key.Name) {
			names = append(names, key.Name)
		}
	}
	const most = 3
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, " or ")
}

// trustedKey is a key with every algorithm that cosign may have signed with.
type trustedKey struct {
	Key
	// hint is the name of the key in bundles: the base64 SHA-256 of its DER.
	hint       string
	algorithms []algorithm
}

// algorithm verifies signatures of one key with one hash.
type algorithm struct {
	verifier signature.Verifier
	hash     crypto.Hash // zero for plain Ed25519; with SHA-256, the digest of the signed bytes suffices
	plain    ed25519.PublicKey
	bundles  *bundleverify.Verifier
}

func newTrustedKey(key Key, log root.TrustedMaterial) (trustedKey, error) {
	if key.Fingerprint == "" {
		return trustedKey{}, errors.New("has no fingerprint, so nobody could be named as signer")
	}
	hashes, err := hashesOf(key)
	if err != nil {
		return trustedKey{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public)
	if err != nil {
		return trustedKey{}, fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(der)
	trusted := trustedKey{Key: key, hint: base64.StdEncoding.EncodeToString(sum[:])}
	for _, hash := range hashes {
		verifier, err := loadVerifier(key.Public, hash)
		if err != nil {
			return trustedKey{}, err
		}
		bundles, err := newBundleVerifier(verifier, log)
		if err != nil {
			return trustedKey{}, err
		}
		plain, _ := key.Public.(ed25519.PublicKey)
		trusted.algorithms = append(trusted.algorithms, algorithm{verifier: verifier, hash: hash, plain: plain, bundles: bundles})
	}
	return trusted, nil
}

// hashesOf returns the hashes to try with key, the likeliest first. For Ed25519, zero means
// the pure form, which cosign wrote before v2.4, and SHA-512 means Ed25519ph (RFC 8032
// section 5.1), which it has written since.
func hashesOf(key Key) ([]crypto.Hash, error) {
	var usual []crypto.Hash
	switch k := key.Public.(type) {
	case ed25519.PublicKey:
		if len(k) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("an Ed25519 key has %d bytes, this one %d", ed25519.PublicKeySize, len(k))
		}
		return []crypto.Hash{crypto.SHA512, 0}, nil
	case *rsa.PublicKey:
		if k == nil || k.N == nil || k.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("RSA keys need at least %d bits", minRSABits)
		}
		// cosign uses SHA-256 for every size, Azure's key management service the hash of the size.
		switch k.N.BitLen() {
		case 3072:
			usual = []crypto.Hash{crypto.SHA256, crypto.SHA384}
		case 4096:
			usual = []crypto.Hash{crypto.SHA256, crypto.SHA512}
		default:
			usual = []crypto.Hash{crypto.SHA256}
		}
	case *ecdsa.PublicKey:
		// cosign used SHA-256 for every curve before v2.4, and has since used the curve's
		// default in the Sigstore algorithm registry.
		switch {
		case k == nil:
		case k.Curve == elliptic.P256():
			usual = []crypto.Hash{crypto.SHA256}
		case k.Curve == elliptic.P384():
			usual = []crypto.Hash{crypto.SHA384, crypto.SHA256}
		case k.Curve == elliptic.P521():
			usual = []crypto.Hash{crypto.SHA512, crypto.SHA256}
		}
	}
	if usual == nil {
		return nil, fmt.Errorf("keys of type %T, or of this curve, are not supported", key.Public)
	}
	switch key.Hash {
	case 0:
		return usual, nil
	case crypto.SHA256, crypto.SHA384, crypto.SHA512:
		return []crypto.Hash{key.Hash}, nil
	}
	return nil, fmt.Errorf("hash %s is not supported, use SHA-256, SHA-384 or SHA-512", key.Hash)
}

func loadVerifier(key crypto.PublicKey, hash crypto.Hash) (signature.Verifier, error) {
	if k, ok := key.(ed25519.PublicKey); ok {
		if hash == 0 {
			return signature.LoadED25519Verifier(k)
		}
		return signature.LoadED25519phVerifier(k)
	}
	return signature.LoadVerifier(key, hash)
}

// newBundleVerifier returns a verifier of bundles that trusts one key, regardless of the
// bundle's hint, and no certificate or timestamp authority. With a log, signatures must be in
// it.
func newBundleVerifier(verifier signature.Verifier, log root.TrustedMaterial) (*bundleverify.Verifier, error) {
	expiring := root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return expiring, nil
	})
	options := []bundleverify.VerifierOption{bundleverify.WithNoObserverTimestamps(), bundleverify.WithoutStatementPredicate()}
	var trusted root.TrustedMaterial = material
	if log != nil {
		trusted = root.TrustedMaterialCollection{material, log}
		options = append(options, bundleverify.WithTransparencyLog(1))
	}
	v, err := bundleverify.NewVerifier(trusted, options...)
	if err != nil {
		return nil, fmt.Errorf("make a bundle verifier: %w", err)
	}
	return v, nil
}
