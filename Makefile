.PHONY: demo test
demo test:
	python3 dev.py $@
