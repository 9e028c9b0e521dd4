module github.com/redial-go/redial/examples/recipes

go 1.26.0

replace github.com/redial-go/redial => ../..

replace github.com/redial-go/redial/reconnect/ledger/boltstore => ../../reconnect/ledger/boltstore

require (
	github.com/coder/websocket v1.8.15
	github.com/eclipse/paho.golang v0.23.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/nats-io/nats.go v1.55.0
	github.com/rabbitmq/amqp091-go v1.16.0
	github.com/redial-go/redial v0.1.0
	github.com/redial-go/redial/reconnect/ledger/boltstore v0.1.0
	github.com/stretchr/testify v1.12.1
	go.etcd.io/bbolt v1.4.3
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/klauspost/compress v1.20.0 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
