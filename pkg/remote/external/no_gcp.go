//go:build !gcp

package external

func gcp() cloudAPI { return absent("Google Cloud", "gcp") }
