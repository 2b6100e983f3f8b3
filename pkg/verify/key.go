package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/landwaiter/landwaiter/pkg/image"
)

// verdictKey is the key of the verdict on a reference that has a digest.
func (c *Config) verdictKey(ref image.Reference) Key {
	return Key{Namespace: c.Namespace, Kind: KindVerdict, UID: c.UID, Generation: c.Generation, Image: ref.Name() + "@" + ref.Digest.String()}
}

// tagKey is the key of what the tag of a reference names.
func (c *Config) tagKey(ref image.Reference) Key {
	return Key{Namespace: c.Namespace, Kind: KindTag, UID: c.UID, Generation: c.Generation, Image: ref.String()}
}

// String returns "landwaiter:<namespace>:<kind>:<hash>", so that access rules
// on the prefix "landwaiter:<namespace>:" fence a tenant in. The namespace of
// cluster scope is "-", which no Kubernetes namespace can be called. The hash
// covers every field with its length, so that no two keys run together.
func (k Key) String() string {
	hash := sha256.New()
	for _, part := range []string{string(k.Namespace), string(k.Kind), k.UID, k.Generation, k.Image} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return "landwaiter:" + k.Namespace.Label() + ":" + string(k.Kind) + ":" + hex.EncodeToString(hash.Sum(nil))
}
