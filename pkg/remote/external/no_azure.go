//go:build !azure

package external

func entra() cloudAPI { return absent("Azure", "azure") }
