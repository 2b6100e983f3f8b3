package intake

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// Vouchers says which third parties' statements a verifier needs. All others are dropped
// unread.
type Vouchers struct{ Log, Time bool }

// Bundle reads a Sigstore bundle (sigstore_bundle.proto) in JSON.
func Bundle(data []byte, needs Vouchers) (*protobundle.Bundle, error) {
	if err := scanJSON(data, jsonLimits{depth: maxDepth, values: maxBundleValues, members: maxMembers}); err != nil {
		return nil, err
	}
	read := &protobundle.Bundle{}
	if err := protojson.Unmarshal(data, read); err != nil {
		return nil, malformed("is not a Sigstore bundle")
	}
	return read,
		checkMaterial(read.GetVerificationMaterial(), needs, strings.HasSuffix(read.GetMediaType(), "v0.3+json") ||
			strings.HasSuffix(read.GetMediaType(), "version=0.3"))
}

// Material drops everything that needs does not name, and refuses certificates, log entries
// and timestamps that would cost too much to verify.
func Material(material *protobundle.VerificationMaterial, needs Vouchers) error {
	return checkMaterial(material, needs, false)
}

func checkMaterial(material *protobundle.VerificationMaterial, needs Vouchers, single bool) error {
	if material == nil {
		return malformed("has no verification material")
	}
	if !needs.Log {
		material.TlogEntries = nil
	}
	if !needs.Time {
		material.TimestampVerificationData = nil
	}
	if err := checkSigner(material, single); err != nil {
		return err
	}
	if err := checkEntries(material.GetTlogEntries()); err != nil {
		return err
	}
	return checkTimestamps(material.GetTimestampVerificationData())
}

// checkSigner reads the signer. Only the first certificate of a chain counts. With single, a chain is cut to that
// certificate: version 0.3 has no chains, but tools write them.
func checkSigner(material *protobundle.VerificationMaterial, single bool) error {
	if hint := material.GetPublicKey().GetHint(); len(hint) > maxHash {
		return pastLimit("has a key hint of %d bytes, the limit is %d", len(hint), maxHash)
	}
	certificate := material.GetCertificate()
	if chain := material.GetX509CertificateChain(); len(chain.GetCertificates()) > 0 {
		if n := len(chain.Certificates); n > maxCertificates {
			return pastLimit("has %d certificates, the limit is %d", n, maxCertificates)
		}
		chain.Certificates = chain.Certificates[:1]
		certificate = chain.Certificates[0]
		if single {
			material.Content = &protobundle.VerificationMaterial_Certificate{Certificate: certificate}
		}
	}
	if certificate == nil {
		return nil
	}
	_, err := Certificate(certificate.GetRawBytes())
	return err
}

func checkEntries(entries []*protorekor.TransparencyLogEntry) error {
	if n := len(entries); n > maxLogEntries {
		return pastLimit("has %d log entries, the limit is %d", n, maxLogEntries)
	}
	total := 0
	for i, entry := range entries {
		if total += len(entry.GetCanonicalizedBody()); total > maxEntryBodies {
			return pastLimit("has log entries of more than %d bytes in all", maxEntryBodies)
		}
		for _, other := range entries[:i] {
			if entry.GetLogIndex() == other.GetLogIndex() && bytes.Equal(entry.GetLogId().GetKeyId(), other.GetLogId().GetKeyId()) {
				return malformed("has a log entry twice")
			}
		}
		if err := checkEntry(entry); err != nil {
			return err
		}
	}
	return nil
}

func checkEntry(entry *protorekor.TransparencyLogEntry) error {
	proof := entry.GetInclusionProof()
	if n := len(proof.GetHashes()); n > maxProofHashes {
		return pastLimit("has an inclusion proof of %d hashes, the limit is %d", n, maxProofHashes)
	}
	for _, hash := range append([][]byte{entry.GetLogId().GetKeyId(), proof.GetRootHash()}, proof.GetHashes()...) {
		if len(hash) > maxHash {
			return pastLimit("has a hash of %d bytes, the limit is %d", len(hash), maxHash)
		}
	}
	if n := len(proof.GetCheckpoint().GetEnvelope()); n > maxCheckpoint {
		return pastLimit("has a checkpoint of %d bytes, the limit is %d", n, maxCheckpoint)
	}
	if n := len(entry.GetInclusionPromise().GetSignedEntryTimestamp()); n > maxPromise {
		return pastLimit("has a signed entry timestamp of %d bytes, the limit is %d", n, maxPromise)
	}
	return checkBody(entry.GetCanonicalizedBody())
}

// checkTimestamps reads timestamps and drops repeated ones.
func checkTimestamps(data *protobundle.TimestampVerificationData) error {
	var kept []*protocommon.RFC3161SignedTimestamp
	total := 0
	for _, timestamp := range data.GetRfc3161Timestamps() {
		if slices.ContainsFunc(kept, func(other *protocommon.RFC3161SignedTimestamp) bool {
			return bytes.Equal(other.GetSignedTimestamp(), timestamp.GetSignedTimestamp())
		}) {
			continue
		}
		if total += len(timestamp.GetSignedTimestamp()); len(kept) == maxTimestamps || total > maxTimestampBytes {
			return pastLimit("has more than %d timestamps, or more than %d bytes of them", maxTimestamps, maxTimestampBytes)
		}
		if err := TimestampResponse(timestamp.GetSignedTimestamp()); err != nil {
			return within("has a timestamp that", err)
		}
		kept = append(kept, timestamp)
	}
	if data != nil {
		data.Rfc3161Timestamps = kept
	}
	return nil
}

// JWS refuses a JWS envelope of the Notary Project (signature envelope JWS specification)
// whose parts are not JSON, nest too deep, have too many values or have duplicate names.
func JWS(data []byte) error {
	if err := JSON(data); err != nil {
		return err
	}
	var envelope struct {
		Payload   string `json:"payload"`
		Protected string `json:"protected"`
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return malformed("is not a JWS envelope")
	}
	for _, part := range []string{envelope.Protected, envelope.Payload} {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return malformed("is not a JWS envelope")
		}
		if err := JSON(text); err != nil {
			return err
		}
	}
	return nil
}
