// Package soak lets many connections live for long with a server that misbehaves, and looks whether
// memory, goroutines and descriptors grow meanwhile. Each connection has a subscription, asks
// questions and sends posts by a ledger; each question and each post is accounted for.
package soak
