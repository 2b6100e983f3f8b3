//go:build nightly

package main

// nightly says that a test may take its time.
const nightly = true
