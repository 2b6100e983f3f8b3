// Package sigstore provides in-process Sigstore instances for tests: a CA, a
// transparency log and a timestamp authority, based on the virtual instance
// of sigstore-go. If the options of a signature say so, certificates have SCTs of separate
// certificate transparency logs.
package sigstore

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Sigstore is one instance. No instance trusts another.
type Sigstore struct {
	virtual     *ca.VirtualSigstore
	transparent *transparent
	stamper     *fixture.TimestampAuthority
}

// New makes an instance.
func New() (*Sigstore, error) {
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		return nil, fmt.Errorf("make a Sigstore: %w", err)
	}
	transparent, err := newTransparent()
	if err != nil {
		return nil, err
	}
	stamper, err := fixture.NewTimestampAuthority("stamper", fixture.CertificateOptions{})
	if err != nil {
		return nil, err
	}
	return &Sigstore{virtual: virtual, transparent: transparent, stamper: stamper}, nil
}

// TrustedRoot returns its trusted_root.json.
func (s *Sigstore) TrustedRoot() ([]byte, error) {
	logs, err := withRawIDs(s.virtual.RekorLogs())
	if err != nil {
		return nil, err
	}
	transparency, err := withRawIDs(s.virtual.CTLogs())
	if err != nil {
		return nil, err
	}
	if err := s.transparent.trusted(transparency); err != nil {
		return nil, err
	}
	authorities := append(s.virtual.FulcioCertificateAuthorities(), s.transparent.authority())
	stampers := append(s.virtual.TimestampingAuthorities(), &root.SigstoreTimestampingAuthority{Root: s.stamper.Root.Chain[0], Leaf: s.stamper.Signer().Chain[0],
		ValidityPeriodStart: s.stamper.Signer().Chain[0].NotBefore, URI: "https://stamper.example.com"})
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authorities, transparency, stampers, logs)
	if err != nil {
		return nil, fmt.Errorf("make a trusted root: %w", err)
	}
	text, err := made.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write the trusted root: %w", err)
	}
	return text, nil
}

// withRawIDs decodes log IDs, which the virtual instance encodes in hex.
func withRawIDs(logs map[string]*root.TransparencyLog) (map[string]*root.TransparencyLog, error) {
	for id, log := range logs {
		raw, err := hex.DecodeString(id)
		if err != nil {
			return nil, fmt.Errorf("read a log's identity: %w", err)
		}
		log.ID, log.SignatureHashFunc = raw, log.HashFunc
	}
	return logs, nil
}

// SignOptions change a signature. The zero value is logged and timestamped.
type SignOptions struct {
	// Time is when the log integrated the entry; zero is in a minute. The certificate is made a
	// moment after the call, and an entry that is older than it by a second does not count.
	Time time.Time
	// WithoutLog and WithoutTimestamp omit the log entry and the timestamp.
	WithoutLog, WithoutTimestamp bool
	// Stamped holds the times of additional timestamps in a bundle, all by one separate
	// authority.
	Stamped []time.Time
	// SCTs holds the numbers (0 and 1) of the certificate transparency logs that issue
	// SCTs for a bundle's certificate, or Forged. The default is no SCT.
	SCTs []int
}

// entity is a signature of the virtual instance.
type entity struct {
	*ca.TestEntity
	certificate []byte
	entry       *protorekor.TransparencyLogEntry
	timestamps  [][]byte
}

func (s *Sigstore) take(made *ca.TestEntity, err error) (*entity, error) {
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	content, err := made.VerificationContent()
	if err != nil {
		return nil, fmt.Errorf("take the certificate: %w", err)
	}
	e := &entity{TestEntity: made, certificate: content.Certificate().Raw}
	if e.timestamps, err = made.Timestamps(); err != nil {
		return nil, fmt.Errorf("take the timestamp: %w", err)
	}
	entries, err := made.TlogEntries()
	if err != nil || len(entries) != 1 {
		return nil, fmt.Errorf("take the log entry: %w", err)
	}
	e.entry = entries[0].TransparencyLogEntry()
	return e, s.complete(e.entry)
}

func (o SignOptions) time() time.Time {
	if o.Time.IsZero() {
		return time.Now().Add(time.Minute)
	}
	return o.Time
}

// Bundle signs a statement for identity, an e-mail address vouched for by issuer, and
// returns a Sigstore bundle v0.3 (sigstore_bundle.proto).
func (s *Sigstore) Bundle(identity, issuer string, statement []byte, options SignOptions) ([]byte, error) {
	e, signature, err := s.statement(identity, issuer, statement, options)
	if err != nil {
		return nil, err
	}
	if options.WithoutTimestamp {
		e.timestamps = nil
	}
	for _, at := range options.Stamped {
		timestamp, err := s.stamper.Stamp(signature, at)
		if err != nil {
			return nil, err
		}
		e.timestamps = append(e.timestamps, timestamp)
	}
	made := &protobundle.Bundle{
		MediaType:            "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: e.material(options),
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{Payload: statement, PayloadType: "application/vnd.in-toto+json",
			Signatures: []*protodsse.Signature{{Sig: signature}}}},
	}
	text, err := protojson.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("write the bundle: %w", err)
	}
	return text, nil
}

// statement signs a statement, and returns the signature too.
func (s *Sigstore) statement(identity, issuer string, statement []byte, options SignOptions) (*entity, []byte, error) {
	if len(options.SCTs) > 0 {
		return s.attest(identity, issuer, statement, options)
	}
	e, err := s.take(s.virtual.AttestAtTime(identity, issuer, statement, options.time(), true))
	if err != nil {
		return nil, nil, err
	}
	content, err := e.SignatureContent()
	if err != nil {
		return nil, nil, fmt.Errorf("take the envelope: %w", err)
	}
	signature, err := base64.StdEncoding.DecodeString(content.EnvelopeContent().RawEnvelope().Signatures[0].Sig)
	if err != nil {
		return nil, nil, fmt.Errorf("read the envelope: %w", err)
	}
	return e, signature, nil
}

func (e *entity) material(options SignOptions) *protobundle.VerificationMaterial {
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_Certificate{
		Certificate: &protocommon.X509Certificate{RawBytes: e.certificate}}}
	if !options.WithoutLog {
		material.TlogEntries = []*protorekor.TransparencyLogEntry{e.entry}
	}
	if len(e.timestamps) > 0 {
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{}
		for _, timestamp := range e.timestamps {
			material.TimestampVerificationData.Rfc3161Timestamps = append(material.TimestampVerificationData.Rfc3161Timestamps,
				&protocommon.RFC3161SignedTimestamp{SignedTimestamp: timestamp})
		}
	}
	return material
}

// Legacy signs a payload and returns the annotations of cosign's legacy layer.
func (s *Sigstore) Legacy(identity, issuer string, payload []byte, options SignOptions) (map[string]string, error) {
	e, err := s.take(s.virtual.SignAtTime(identity, issuer, payload, options.time()))
	if err != nil {
		return nil, err
	}
	content, err := e.SignatureContent()
	if err != nil {
		return nil, fmt.Errorf("take the signature: %w", err)
	}
	annotations := map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(content.Signature()),
		"dev.sigstore.cosign/certificate":    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.certificate})),
	}
	if !options.WithoutLog {
		annotations["dev.sigstore.cosign/bundle"] = mustJSON(map[string]any{
			"SignedEntryTimestamp": e.entry.GetInclusionPromise().GetSignedEntryTimestamp(),
			"Payload": map[string]any{"body": base64.StdEncoding.EncodeToString(e.entry.GetCanonicalizedBody()),
				"integratedTime": e.entry.GetIntegratedTime(), "logIndex": e.entry.GetLogIndex(), "logID": hex.EncodeToString(e.entry.GetLogId().GetKeyId())},
		})
	}
	if !options.WithoutTimestamp {
		annotations["dev.sigstore.cosign/rfc3161timestamp"] = mustJSON(map[string]any{"SignedRFC3161Timestamp": e.timestamps[0]})
	}
	return annotations, nil
}

// mustJSON encodes value. It panics on errors, which are bugs in the test.
func mustJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Statement is an in-toto statement v1 about an image.
func Statement(subject digest.Digest, predicateType string, predicate any) []byte {
	return []byte(mustJSON(map[string]any{"_type": "https://in-toto.io/Statement/v1", "predicateType": predicateType, "predicate": predicate,
		"subject": []any{map[string]any{"digest": map[string]any{"sha256": subject.Encoded()}}}}))
}
