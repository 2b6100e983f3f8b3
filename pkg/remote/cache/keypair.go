package cache

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"sync"
)

// keyPair is the keys of one scope that come from one master key.
type keyPair struct {
	encryption cipher.Block
	macs       sync.Pool // of hash.Hash with the authentication key, which is costly to set up
}

// derive returns the keys of a scope.
func (m master) derive(of scope) (*keyPair, error) {
	encryption, err := m.expand("encryption", of)
	if err != nil {
		return nil, err
	}
	authentication, err := m.expand("authentication", of)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(encryption)
	if err != nil {
		return nil, fmt.Errorf("derive a cache key: %w", err)
	}
	return &keyPair{encryption: block, macs: sync.Pool{New: func() any { return hmac.New(sha256.New, authentication) }}}, nil
}

// expand derives the key of a scope for one purpose. The length of the namespace keeps two
// scopes from having one label.
func (m master) expand(purpose string, of scope) ([]byte, error) {
	key, err := hkdf.Expand(sha256.New, m.root, fmt.Sprintf("landwaiter cache 2 %s %d %s %s", purpose, len(of.namespace), of.namespace, of.uid), masterBytes)
	if err != nil {
		return nil, fmt.Errorf("derive a cache key: %w", err)
	}
	return key, nil
}

// crypt encrypts or decrypts from into to, which has the same length.
func (p *keyPair) crypt(iv, to, from []byte) {
	cipher.NewCTR(p.encryption, iv).XORKeyStream(to, from)
}

// tag appends the tag of a body under a cache key. The key's length comes last, so that no
// end of a body passes for the beginning of a key.
func (p *keyPair) tag(to []byte, key string, body []byte) []byte {
	mac := p.macs.Get().(hash.Hash) //nolint:forcetypeassert // the pool has nothing else
	defer p.macs.Put(mac)
	mac.Reset()
	mac.Write(body)
	var rest [256]byte
	mac.Write(binary.BigEndian.AppendUint64(append(rest[:0], key...), uint64(len(key))))
	return mac.Sum(to)
}
