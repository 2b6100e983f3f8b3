package cache

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Seal encrypts and authenticates values in an untrusted store: anyone who can write to the
// store can neither forge a value, nor move one to another key, namespace or UID, nor extend
// its expiry. Each UID of a namespace has a key of AES-256-GCM (NIST SP 800-38D), derived from a
// master key by HKDF-SHA256 (RFC 5869). It is safe for concurrent use.
type Seal struct {
	masters []master

	mu   sync.RWMutex
	keys map[verify.Namespace]scopedKeys
	seen map[verify.Namespace][]string // the UIDs that each namespace had, the latest last
}

// scope is the owner of the values that a key seals. Cluster scope has no UID, nor has a
// namespace whose file gives none.
type scope struct {
	namespace verify.Namespace
	uid       string
}

// master is a master key.
type master struct {
	root    []byte // the key that HKDF extracted from it
	version keyVersion
}

// keyVersion identifies the master key that sealed a value.
type keyVersion [4]byte

// scopedKeys are the keys of one scope, one for each master key.
type scopedKeys struct {
	uid     string
	sealers []cipher.AEAD
}

// A value is its header (format, version of the key, expiry, and the UID with its length), followed by the
// output of [cipher.NewGCMWithRandomNonce] for the content. The header, which contains its own length, and the
// whole cache key are authenticated data.
const (
	// sealFormat is the first byte of every value. Another layout needs another byte.
	sealFormat = 3

	expiryAt   = 1 + len(keyVersion{})
	uidAt      = expiryAt + 8 + 1
	maxUID     = 255
	gcmBytes   = 12 + 16 // nonce and tag
	leastBytes = uidAt + gcmBytes
)

// Why a value does not open.
var (
	errNotOurs     = errors.New("the value is not one of ours")
	errOtherMaster = errors.New("the value was sealed with a key that is not in the key file")
	errForged      = errors.New("the value was not sealed for this key, or was changed")
)

// ParseSeal reads master keys of 32 bytes in base64, one per line. The first one seals and
// all of them open, so that a key can be rotated without losing the cache.
func ParseSeal(text []byte) (*Seal, error) {
	s := &Seal{keys: map[verify.Namespace]scopedKeys{}, seen: map[verify.Namespace][]string{}}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		secret, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(secret) != masterBytes {
			return nil, fmt.Errorf("a cache key is not %d bytes in base64; make one with: openssl rand -base64 %d", masterBytes, masterBytes)
		}
		m, err := newMaster(secret)
		if err != nil {
			return nil, err
		}
		s.masters = append(s.masters, m)
	}
	if len(s.masters) == 0 || len(s.masters) > maxMasters {
		return nil, fmt.Errorf("there are %d cache keys, there must be 1 to %d, one a line", len(s.masters), maxMasters)
	}
	return s, nil
}

func newMaster(secret []byte) (master, error) {
	root, err := hkdf.Extract(sha256.New, secret, nil)
	if err != nil {
		return master{}, fmt.Errorf("derive a cache key: %w", err)
	}
	version, err := hkdf.Expand(sha256.New, root, "landwaiter cache 3 version", len(keyVersion{}))
	if err != nil {
		return master{}, fmt.Errorf("derive a cache key: %w", err)
	}
	return master{root: root, version: keyVersion(version)}, nil
}

// sealer returns the cipher of a scope. The length of the namespace ensures that two scopes have different
// labels.
func (m master) sealer(of scope) (cipher.AEAD, error) {
	key, err := hkdf.Expand(sha256.New, m.root, fmt.Sprintf("landwaiter cache 3 %d %s %s", len(of.namespace), of.namespace, of.uid),
		masterBytes)
	if err != nil {
		return nil, fmt.Errorf("derive a cache key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive a cache key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealers returns the ciphers of a scope, one for each master key. It caches those of one UID for each
// namespace: a namespace has one UID at a time.
func (s *Seal) sealers(of scope) ([]cipher.AEAD, error) {
	s.mu.RLock()
	found, ok := s.keys[of.namespace]
	s.mu.RUnlock()
	if ok && found.uid == of.uid {
		return found.sealers, nil
	}
	found = scopedKeys{uid: of.uid}
	for _, m := range s.masters {
		sealer, err := m.sealer(of)
		if err != nil {
			return nil, err
		}
		found.sealers = append(found.sealers, sealer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.keys) >= maxSealKeys {
		clear(s.keys)
		clear(s.seen)
	}
	s.keys[of.namespace] = found
	seen := append(slices.DeleteFunc(s.seen[of.namespace], func(uid string) bool { return uid == of.uid }), of.uid)
	s.seen[of.namespace] = seen[max(len(seen)-maxSeenUIDs, 0):]
	return found.sealers, nil
}

// uids returns the latest UIDs of a namespace for which values were sealed or opened.
func (s *Seal) uids(namespace verify.Namespace) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.seen[namespace])
}

// close seals a value for a cache key, until expires.
func (s *Seal) close(of scope, key string, plain []byte, expires time.Time) ([]byte, error) {
	if len(of.uid) > maxUID {
		return nil, fmt.Errorf("the UID of namespace %s is longer than %d bytes", of.namespace, maxUID)
	}
	sealers, err := s.sealers(of)
	if err != nil {
		return nil, err
	}
	header := uidAt + len(of.uid)
	sealed := make([]byte, header, header+len(plain)+gcmBytes)
	sealed[0] = sealFormat
	copy(sealed[1:], s.masters[0].version[:])
	binary.BigEndian.PutUint64(sealed[expiryAt:], uint64(expires.UnixMilli()))
	sealed[uidAt-1] = byte(len(of.uid)) //nolint:gosec // at most maxUID
	copy(sealed[uidAt:], of.uid)
	return sealers[0].Seal(sealed, nil, plain, authenticated(sealed, key)), nil //nolint:gosec // the cipher makes the nonce
}

// authenticated returns the authenticated data in addition to the value. The header contains its
// own length.
func authenticated(header []byte, key string) []byte {
	return append(header[:len(header):len(header)], key...)
}

// open returns the value that was sealed for a scope and cache key, and its expiry.
func (s *Seal) open(of scope, key string, sealed []byte) ([]byte, time.Time, error) {
	uid, err := sealedFor(sealed)
	if err != nil {
		return nil, time.Time{}, err
	}
	if uid != of.uid {
		return nil, time.Time{}, errForged
	}
	sealers, err := s.sealers(of)
	if err != nil {
		return nil, time.Time{}, err
	}
	header, rest := sealed[:uidAt+len(uid)], sealed[uidAt+len(uid):]
	err = errOtherMaster
	for i, m := range s.masters {
		if m.version != keyVersion(sealed[1:expiryAt]) {
			continue
		}
		plain, forged := sealers[i].Open(nil, nil, rest, authenticated(header, key))
		if forged == nil {
			return plain, time.UnixMilli(int64(binary.BigEndian.Uint64(sealed[expiryAt:]))), nil //nolint:gosec // authenticated
		}
		err = errForged
	}
	return nil, time.Time{}, err
}

// sealedFor returns the UID that a value claims to be sealed for. It is not authenticated
// before the value is opened.
func sealedFor(sealed []byte) (uid string, err error) {
	if len(sealed) < leastBytes || sealed[0] != sealFormat || len(sealed) < leastBytes+int(sealed[uidAt-1]) {
		return "", errNotOurs
	}
	return string(sealed[uidAt : uidAt+int(sealed[uidAt-1])]), nil
}

// headBytes is the length of a value's beginning that [sealedFor] needs.
const headBytes = int64(leastBytes + maxUID)
