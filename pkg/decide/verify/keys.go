package verify

import "github.com/landwaiter/landwaiter/pkg/formats/image"

// verdictKey returns the cache key of the verdict on a reference with a digest.
func (c *Config) verdictKey(ref image.Reference) Key {
	return Key{Namespace: c.Namespace, Kind: KindVerdict, UID: c.UID, Generation: c.Generation, Image: ref.Name() + "@" + ref.Digest.String()}
}

// tagKey returns the cache key of the digest of a tag that every layer agrees on.
func (c *Config) tagKey(ref image.Reference) Key {
	return Key{Namespace: c.Namespace, Kind: KindTag, UID: c.UID, Generation: c.Generation, Image: ref.String()}
}

// ownTagKey returns the cache key of the digest of a tag that only the first layer has
// been asked for. No reference has a space.
func (c *Config) ownTagKey(ref image.Reference) Key {
	key := c.tagKey(ref)
	key.Image += " not compared"
	return key
}
