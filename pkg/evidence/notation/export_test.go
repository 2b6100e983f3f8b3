package notation

import (
	"crypto/x509"
	"math/big"
)

// ReducedList is what is read of a list for one serial number.
func ReducedList(content []byte, serial *big.Int) (*x509.RevocationList, error) {
	return reduced(content, newFetchedLists([]*x509.Certificate{{SerialNumber: serial}}, nil, nil).serials, func() error { return nil })
}
