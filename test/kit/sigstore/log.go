package sigstore

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/tlog"
)

// Log adds an entry of Rekor v1 without checking its body. It returns the entry with a
// signed entry timestamp and an inclusion proof.
func (s *Sigstore) Log(body []byte, at time.Time) (*protorekor.TransparencyLogEntry, error) {
	id, err := s.virtual.RekorLogID()
	if err != nil {
		return nil, fmt.Errorf("name the log: %w", err)
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		return nil, fmt.Errorf("read the log's identity: %w", err)
	}
	proof, err := s.virtual.GetInclusionProof(body)
	if err != nil {
		return nil, fmt.Errorf("prove inclusion: %w", err)
	}
	root, err := hex.DecodeString(*proof.RootHash)
	if err != nil {
		return nil, fmt.Errorf("read the log's root: %w", err)
	}
	entry := &protorekor.TransparencyLogEntry{LogIndex: *proof.LogIndex, LogId: &protocommon.LogId{KeyId: raw}, IntegratedTime: at.Unix(), CanonicalizedBody: body,
		InclusionProof: &protorekor.InclusionProof{LogIndex: *proof.LogIndex, RootHash: root, TreeSize: *proof.TreeSize,
			Checkpoint: &protorekor.Checkpoint{Envelope: *proof.Checkpoint}}}
	for _, text := range proof.Hashes {
		hash, err := hex.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("read the proof: %w", err)
		}
		entry.InclusionProof.Hashes = append(entry.InclusionProof.Hashes, hash)
	}
	return entry, s.complete(entry)
}

// complete adds the kind and the signed entry timestamp to an entry.
func (s *Sigstore) complete(entry *protorekor.TransparencyLogEntry) error {
	var kind struct{ Kind, APIVersion string }
	if err := json.Unmarshal(entry.GetCanonicalizedBody(), &kind); err != nil {
		return fmt.Errorf("read the log entry: %w", err)
	}
	entry.KindVersion = &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion}
	promise, err := s.virtual.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(entry.GetCanonicalizedBody()), IntegratedTime: entry.GetIntegratedTime(),
		LogIndex: entry.GetLogIndex(), LogID: hex.EncodeToString(entry.GetLogId().GetKeyId()),
	})
	if err != nil {
		return fmt.Errorf("promise inclusion: %w", err)
	}
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	return nil
}
