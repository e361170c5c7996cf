module gob-peer

go 1.18
