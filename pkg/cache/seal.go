package cache

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Seal encrypts and authenticates values in an untrusted store: whoever can write to the
// store can neither forge a value, nor move one to another key or namespace, nor extend its
// expiry. Each namespace has a key of its own, derived from a master key by HKDF-SHA256
// (RFC 5869). Values are AES-256-GCM (NIST SP 800-38D) with a random nonce; the whole cache
// key and the expiry are authenticated with them. It is safe for concurrent use.
type Seal struct {
	masters [][]byte

	mu    sync.RWMutex
	aeads map[verify.Namespace][]cipher.AEAD
}

const (
	// sealFormat begins every value; another layout is another byte.
	sealFormat = 1
	sealHeader = 1 + 8 // format, expiry
)

// ParseSeal reads master keys of 32 bytes in base64, one per line. The first one seals and
// all of them open, so that a key can be rotated without losing the cache.
func ParseSeal(text []byte) (*Seal, error) {
	s := &Seal{aeads: map[verify.Namespace][]cipher.AEAD{}}
	for line := range splitLines(text) {
		master, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(master) != masterBytes {
			return nil, fmt.Errorf("a cache key is not %d bytes in base64; make one with: openssl rand -base64 %d", masterBytes, masterBytes)
		}
		s.masters = append(s.masters, master)
	}
	if len(s.masters) == 0 || len(s.masters) > maxMasters {
		return nil, fmt.Errorf("there are %d cache keys, there must be 1 to %d, one a line", len(s.masters), maxMasters)
	}
	return s, nil
}

// keys returns the ciphers of a namespace, one per master key.
func (s *Seal) keys(namespace verify.Namespace) ([]cipher.AEAD, error) {
	s.mu.RLock()
	found := s.aeads[namespace]
	s.mu.RUnlock()
	if found != nil {
		return found, nil
	}
	for _, master := range s.masters {
		key, err := hkdf.Key(sha256.New, master, nil, "landwaiter cache "+string(namespace), masterBytes)
		if err != nil {
			return nil, fmt.Errorf("derive a cache key: %w", err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("derive a cache key: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("derive a cache key: %w", err)
		}
		found = append(found, aead)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.aeads) >= maxSealKeys {
		clear(s.aeads)
	}
	s.aeads[namespace] = found
	return found, nil
}

// close seals a value for a cache key, until expires.
func (s *Seal) close(namespace verify.Namespace, key string, plain []byte, expires time.Time) ([]byte, error) {
	aeads, err := s.keys(namespace)
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, sealHeader+aeads[0].NonceSize(), sealHeader+aeads[0].NonceSize()+len(plain)+aeads[0].Overhead())
	sealed[0] = sealFormat
	binary.BigEndian.PutUint64(sealed[1:], uint64(expires.UnixMilli()))
	nonce := sealed[sealHeader:]
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("make a nonce: %w", err)
	}
	return aeads[0].Seal(sealed, nonce, plain, authenticated(key, sealed)), nil //nolint:gosec // the nonce is random
}

// open returns the value that was sealed for a cache key, and its expiry.
func (s *Seal) open(namespace verify.Namespace, key string, sealed []byte) ([]byte, time.Time, error) {
	aeads, err := s.keys(namespace)
	if err != nil {
		return nil, time.Time{}, err
	}
	if len(sealed) < sealHeader+aeads[0].NonceSize() || sealed[0] != sealFormat {
		return nil, time.Time{}, errors.New("the value is not one of ours")
	}
	expires := time.UnixMilli(int64(binary.BigEndian.Uint64(sealed[1:]))) //nolint:gosec // authenticated below
	nonce, box := sealed[sealHeader:sealHeader+aeads[0].NonceSize()], sealed[sealHeader+aeads[0].NonceSize():]
	for _, aead := range aeads {
		if plain, err := aead.Open(nil, nonce, box, authenticated(key, sealed)); err == nil {
			return plain, expires, nil
		}
	}
	return nil, time.Time{}, errors.New("the value was not sealed for this key, or not by us")
}

// authenticated returns the additional data of a value: format, expiry and the whole key.
func authenticated(key string, sealed []byte) []byte {
	return append(append(make([]byte, 0, sealHeader+len(key)), sealed[:sealHeader]...), key...)
}

// splitLines yields lines that are not empty.
func splitLines(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !yield(line) {
				return
			}
		}
	}
}
