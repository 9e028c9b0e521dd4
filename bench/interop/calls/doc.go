// Package calls shows how to ask a JSON-RPC server and a GraphQL server with package
// reconnect/call. Its types are to be copied rather than imported. Its tests try them with servers
// that others have written, which are killed under load and started again: package rpc of
// go-ethereum, and graphql-ws on Node. For the second one run npm ci in the directory graphql.
package calls
