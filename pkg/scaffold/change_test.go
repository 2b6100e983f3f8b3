//go:build !nightly

package scaffold

const nightly = false
