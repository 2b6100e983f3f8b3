//go:build nightly

package scaffold

// nightly says that a test may take its time.
const nightly = true
