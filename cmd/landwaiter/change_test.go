//go:build !nightly

package main

const nightly = false
