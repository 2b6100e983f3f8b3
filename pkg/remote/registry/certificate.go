package registry

import (
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
)

// ParseClientCertificate reads a certificate chain and its private key, both PEM, as in a
// Secret of type kubernetes.io/tls. Its errors never hold what was read.
func ParseClientCertificate(chain, key []byte) (*tls.Certificate, error) {
	switch {
	case len(chain) == 0:
		return nil, errors.New("it has no tls.crt")
	case len(key) == 0:
		return nil, errors.New("it has no tls.key")
	case len(chain) > maxClientChainBytes:
		return nil, fmt.Errorf("tls.crt is %d bytes large, the limit is %d", len(chain), maxClientChainBytes)
	case len(key) > maxClientKeyBytes:
		return nil, fmt.Errorf("tls.key is %d bytes large, the limit is %d", len(key), maxClientKeyBytes)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, errors.New("tls.crt and tls.key are not the PEM text of a certificate and its private key")
	}
	if public, ok := pair.Leaf.PublicKey.(*rsa.PublicKey); ok && public.N.BitLen() > maxClientKeyBits {
		return nil, fmt.Errorf("the key has %d bits, the limit is %d", public.N.BitLen(), maxClientKeyBits)
	}
	return &pair, nil
}
