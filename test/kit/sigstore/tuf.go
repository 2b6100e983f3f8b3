package sigstore

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// Repository is a TUF repository with one target, trusted_root.json, signed with one key.
type Repository struct{ signer signature.Signer }

// RepositoryState is what a [Repository] says.
type RepositoryState struct {
	// Version is that of every role.
	Version int64
	// Expires is when root and targets expire, Fresh when snapshot and timestamp do.
	Expires, Fresh time.Time
	TrustedRoot    []byte
}

// NewRepository makes a key for a repository.
func NewRepository() (*Repository, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	signer, err := signature.LoadED25519Signer(private)
	if err != nil {
		return nil, fmt.Errorf("use the key: %w", err)
	}
	return &Repository{signer: signer}, nil
}

// Write writes the repository as a mirror serves it, and root.json beside it.
func (r *Repository) Write(dir string, state RepositoryState) error {
	public, err := r.signer.PublicKey()
	if err != nil {
		return fmt.Errorf("take the key: %w", err)
	}
	key, err := metadata.KeyFromPublicKey(public)
	if err != nil {
		return fmt.Errorf("take the key: %w", err)
	}
	root, targets := metadata.Root(state.Expires), metadata.Targets(state.Expires)
	for _, role := range []string{metadata.ROOT, metadata.TIMESTAMP, metadata.SNAPSHOT, metadata.TARGETS} {
		if err := root.Signed.AddKey(key, role); err != nil {
			return fmt.Errorf("give role %s a key: %w", role, err)
		}
	}
	root.Signed.Version = state.Version
	const target = "trusted_root.json"
	file, err := metadata.TargetFile().FromBytes(target, state.TrustedRoot, "sha256")
	if err != nil {
		return fmt.Errorf("describe %s: %w", target, err)
	}
	targets.Signed.Targets[target], targets.Signed.Version = file, state.Version
	snapshot, timestamp := metadata.Snapshot(state.Fresh), metadata.Timestamp(state.Fresh)
	snapshot.Signed.Version, timestamp.Signed.Version = state.Version, state.Version
	snapshot.Signed.Meta["targets.json"].Version = state.Version
	timestamp.Signed.Meta["snapshot.json"].Version = state.Version
	files := map[string][]byte{filepath.Join("targets", file.Hashes["sha256"].String()+"."+target): state.TrustedRoot}
	for name, text := range map[string]func() ([]byte, error){
		fmt.Sprintf("%d.root.json", state.Version): func() ([]byte, error) { return signedBytes(root, r.signer) },
		"timestamp.json": func() ([]byte, error) { return signedBytes(timestamp, r.signer) },
		fmt.Sprintf("%d.snapshot.json", state.Version): func() ([]byte, error) { return signedBytes(snapshot, r.signer) },
		fmt.Sprintf("%d.targets.json", state.Version):  func() ([]byte, error) { return signedBytes(targets, r.signer) },
	} {
		if files[name], err = text(); err != nil {
			return fmt.Errorf("sign %s: %w", name, err)
		}
	}
	files["root.json"] = files[fmt.Sprintf("%d.root.json", state.Version)]
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func signedBytes[T metadata.Roles](of *metadata.Metadata[T], signer signature.Signer) ([]byte, error) {
	if _, err := of.Sign(signer); err != nil {
		return nil, err
	}
	return of.ToBytes(false)
}
