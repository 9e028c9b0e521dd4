module github.com/redial-go/redial/reconnect/ledger/boltstore

go 1.26

require (
	github.com/coder/websocket v1.8.15
	github.com/redial-go/redial v0.1.0
	github.com/stretchr/testify v1.12.1
	go.etcd.io/bbolt v1.4.3
	go.uber.org/goleak v1.3.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.29.0 // indirect
)

replace github.com/redial-go/redial => ../../..
